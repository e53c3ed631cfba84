import type { FoundJob, JobHistoryEntry } from "../../../index.ts";
import type { TimelineEntry } from "../../contract.ts";
import { firstLine, moment } from "../rows.ts";

/** What happened to a job and what comes next, oldest first, as far as it is known. */
export function timelineOf(job: FoundJob, now: Date): TimelineEntry[] {
  const entries: TimelineEntry[] = [];
  if (job.state !== "finished") entries.push(entry(job.created_at, "added", "added"));
  for (const attempt of job.history) entries.push(...attemptEntries(attempt));
  if (job.state === "running" && job.locked_at) {
    entries.push(entry(job.locked_at, "locked", "runs now", { attempt: job.attempts, worker: job.locked_by }));
  } else if (job.state === "scheduled" || job.state === "waiting") {
    const isLater = job.run_at > now;
    const message = isLater ? (job.attempts > 0 ? "runs again" : "runs") : "due";
    entries.push(entry(job.run_at, "due", message, { attempt: job.attempts + 1 }));
  } else if (job.state === "finished" && job.history.length === 0) {
    entries.push(entry(job.finished_at, job.outcome, job.outcome));
  }
  return entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
}

const words: Readonly<Record<JobHistoryEntry["outcome"], string>> = {
  succeeded: "succeeded",
  failed: "failed",
  permanentlyFailed: "failed permanently",
  cancelled: "cancelled",
  snoozed: "put off by its task",
};

function attemptEntries(attempt: JobHistoryEntry): TimelineEntry[] {
  const { settled_at: at, run_ms: runMs, wait_ms: waitMs, worker_id: worker, outcome, error, fingerprint } = attempt;
  const { stack } = attempt;
  const shared = { attempt: attempt.attempt, worker };
  const message = error ? `${words[outcome]}: ${firstLine(error)}` : words[outcome];
  return [
    // Who was cancelled while waiting never started.
    ...(outcome === "cancelled" && runMs === 0
      ? []
      : [entry(new Date(at.getTime() - runMs), "started", "started", { ...shared, waitMs })]),
    entry(at, outcome, message, { ...shared, runMs, error, fingerprint, stack }),
  ];
}

function entry(
  at: Date,
  kind: TimelineEntry["kind"],
  message: string,
  rest: Partial<TimelineEntry> = {},
): TimelineEntry {
  const unknown = {
    attempt: null,
    worker: null,
    waitMs: null,
    runMs: null,
    error: null,
    fingerprint: null,
    stack: null,
  };
  return { at: moment(at), kind, message, ...unknown, ...rest };
}
