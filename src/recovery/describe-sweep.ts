import type { DeadWorker, SweepResult } from "./sweep.ts";

const reasons: Record<DeadWorker["reason"], string> = {
  silent: "gave no sign of life for too long",
  lost: "lost its connection and did not come back",
  orphan: "had left, but not its locks",
};

/** What a sweep did, or would do, a sentence for each dead worker. */
export function describeSweep({ workers, jobs }: SweepResult, dryRun = false): string[] {
  const taken = dryRun ? "would be taken back" : "taken back";
  return workers.map((worker) => {
    const its = jobs.filter(({ workerId }) => workerId === worker.id);
    const suspects = its.filter(({ outcome }) => outcome === "suspect");
    return (
      `Worker ${worker.id}${placeOf(worker)} ${reasons[worker.reason]}${blockOf(worker)}: ` +
      (its.length === 0 ? "it held no jobs." : `${its.length === 1 ? "1 job" : `${its.length} jobs`} ${taken}.`) +
      (suspects.length > 0
        ? ` Failed for good, having run in too many deaths: ${suspects.map(({ id, task }) => `${id} (${task})`).join(", ")}.`
        : "")
    );
  });
}

function placeOf({ metadata }: DeadWorker): string {
  if (typeof metadata !== "object" || metadata === null || !("pid" in metadata)) return "";
  const host = "hostname" in metadata ? ` on ${String(metadata.hostname)}` : "";
  return ` (process ${String(metadata.pid)}${host})`;
}

/** A worker whose event loop stood still said so as long as it could. */
function blockOf({ metadata }: DeadWorker): string {
  if (typeof metadata !== "object" || metadata === null || !("blocked" in metadata)) return "";
  const blocked = metadata.blocked as { jobs?: unknown };
  return Array.isArray(blocked.jobs) ? `, its event loop blocked by job ${blocked.jobs.map(String).join(" or ")}` : "";
}
