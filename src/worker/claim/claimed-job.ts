import type { ClaimedRow } from "../../db/statements/claim.ts";
import type { Job } from "../../job.ts";
import { hideTraces } from "../../trace-context.ts";

/** Whole milliseconds, as the driver gives them; the half microsecond makes up for what floating point loses. */
function toDate(seconds: number): Date {
  // The driver gives infinite times as numbers, and so do we.
  if (seconds >= 1e15 || seconds <= -1e15) return (seconds * Infinity) as unknown as Date;
  return new Date(Math.floor(seconds * 1000 + 0.0005));
}

/** Builds the job that a task is handed. */
export function claimedJob(
  row: ClaimedRow,
  payload: unknown,
  taskIdentifier: string,
  poolId: string,
  lockedAt: Date,
): Job {
  return hideTraces({
    id: row[0],
    job_queue_id: row[1],
    task_id: row[2],
    payload,
    priority: row[4],
    run_at: toDate(row[5]),
    attempts: row[6],
    max_attempts: row[7],
    last_error: row[8],
    created_at: toDate(row[9]),
    updated_at: toDate(row[10]),
    key: row[11],
    locked_at: lockedAt,
    locked_by: poolId,
    revision: row[12],
    flags: row[13],
    is_available: false,
    task_identifier: taskIdentifier,
  });
}
