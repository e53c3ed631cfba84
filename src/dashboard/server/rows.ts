import type { ErrorGroup, HistoryEntry, ListedJob, Pause } from "../../index.ts";
import type { BoundedCount, ErrorGroupRow, HistoryRow, JobRow, Moment, PauseInfo, Progress } from "../contract.ts";

/* How what the library says is written for the browser. */

export function moment(date: Date): Moment;
export function moment(date: Date | null | undefined): Moment | null;
export function moment(date: Date | null | undefined): Moment | null {
  return date && Number.isFinite(date.getTime()) ? date.toISOString() : null;
}

export function exactly(count: number): BoundedCount {
  return { count, isMore: false };
}

export function bounded(count: number, most: number): BoundedCount {
  return count >= most ? { count: most, isMore: true } : { count, isMore: false };
}

/** The first line of an error, at a length that a table can show. */
export function firstLine(text: string | null): string | null {
  if (text === null) return null;
  const [line = ""] = text.trimStart().split("\n", 1);
  return line.length > 300 ? `${line.slice(0, 300)}…` : line;
}

export function toPause(pause: Pause | null): PauseInfo | null {
  if (!pause) return null;
  const { kind, name, pausedAt, until, reason, pausedBy: by } = pause;
  return { kind, name, at: moment(pausedAt), until: moment(until), reason, by };
}

export function toJobRow(job: ListedJob): JobRow {
  return {
    id: job.id,
    state: job.state,
    task: job.task_identifier,
    queue: job.queue_name,
    key: job.key,
    priority: job.priority,
    attempts: job.attempts,
    maxAttempts: job.max_attempts,
    runAt: moment(job.run_at),
    createdAt: moment(job.created_at),
    updatedAt: moment(job.updated_at),
    lockedAt: moment(job.locked_at),
    lockedBy: job.locked_by,
    lastError: firstLine(job.last_error),
    flags: Object.keys(job.flags ?? {}),
    isCancelled: job.cancelled_at !== null,
    snoozes: job.snoozes,
    pause: toPause(job.pause),
    progress: toProgress(job.progress),
  };
}

export function toProgress(progress: ListedJob["progress"]): Progress | null {
  if (!progress) return null;
  const { done, total, note, reported_at: at } = progress;
  const amount = total === null ? `${done.toLocaleString("en")} done` : null;
  const percent = total === null || total === 0 ? null : Math.min(100, (100 * done) / total);
  return { percent, message: note ?? amount, at: moment(at) };
}

export function toHistoryRow(entry: HistoryEntry): HistoryRow {
  return {
    id: entry.id,
    task: entry.task_identifier,
    queue: entry.queue_name,
    key: entry.key,
    attempt: entry.attempt,
    maxAttempts: entry.max_attempts,
    outcome: entry.outcome,
    at: moment(entry.settled_at),
    waitMs: entry.wait_ms,
    runMs: entry.run_ms,
    worker: entry.worker_id,
    error: firstLine(entry.error),
    fingerprint: entry.fingerprint,
  };
}

/** `lookAt`: how many failures of the group were looked at, at most. */
export function toErrorGroup(group: ErrorGroup, lookAt: number): ErrorGroupRow {
  return {
    fingerprint: group.fingerprint,
    task: group.task_identifier,
    errorClass: group.error_class,
    message: firstLine(group.example_error) ?? "",
    count: { count: group.count, isMore: group.has_more },
    jobs: { count: group.jobs ?? group.count, isMore: group.count >= lookAt },
    firstAt: moment(group.first_at),
    lastAt: moment(group.last_at),
    spark: group.trend,
  };
}
