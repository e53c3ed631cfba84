import type { DeadWorker, SweepResult } from "./sweep.ts";

const reasons: Record<DeadWorker["reason"], string> = {
  silent: "sent no heartbeat for too long",
  lost: "lost its connection and did not reconnect",
  orphan: "had stopped, but left locks behind",
};

/** Describes what a sweep did or would do, one sentence per dead worker. */
export function describeSweep({ workers, jobs }: SweepResult, dryRun = false): string[] {
  const taken = dryRun ? "would be recovered" : "recovered";
  return workers.map((worker) => {
    const its = jobs.filter(({ workerId }) => workerId === worker.id);
    const suspects = its.filter(({ outcome }) => outcome === "suspect");
    return (
      `Worker ${worker.id}${placeOf(worker)} ${reasons[worker.reason]}${blockOf(worker)}: ` +
      (its.length === 0 ? "it held no jobs." : `${its.length === 1 ? "1 job" : `${its.length} jobs`} ${taken}.`) +
      (suspects.length > 0
        ? ` Permanently failed, as the only suspect in too many crashes: ${suspects.map(({ id, task }) => `${id} (${task})`).join(", ")}.`
        : "")
    );
  });
}

function placeOf({ metadata }: DeadWorker): string {
  if (typeof metadata !== "object" || metadata === null || !("pid" in metadata)) return "";
  const host = "hostname" in metadata ? ` on ${String(metadata.hostname)}` : "";
  return ` (process ${String(metadata.pid)}${host})`;
}

/** What blocked the worker's event loop, if its last heartbeats reported it. */
function blockOf({ metadata }: DeadWorker): string {
  const { blocked } = (metadata ?? {}) as { blocked?: { jobs?: unknown } | null };
  const jobs = blocked?.jobs;
  if (!Array.isArray(jobs)) return "";
  return jobs.length === 0
    ? ", its event loop blocked while no job was running"
    : `, its event loop blocked by job ${jobs.map(String).join(" or ")}`;
}
