import type { CronRunSpec } from "../db/statements/cron.ts";
import type { CronJob } from "../events.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { localTime } from "./due.ts";

/** A run of an item, and the job that it asks for. */
export interface CronRunRequest {
  readonly item: ParsedCronItem;
  readonly identifier: string;
  readonly job: CronJob;
}

/** The job for a run at `at`. Its payload's `_cron` says when it was due; and where, if the item has a zone. */
export function requestRun(
  item: ParsedCronItem,
  at: Date,
  { backfilled, timeZone: defaultTimeZone }: { readonly backfilled: boolean; readonly timeZone?: string | undefined },
): CronRunRequest {
  const { queueName, maxAttempts, priority, jobKey, jobKeyMode, flags } = item.options;
  const timeZone = item.options.timeZone ?? defaultTimeZone;
  const ts = at.toISOString();
  const job: CronJob = {
    task: item.task,
    payload: {
      ...item.payload,
      _cron: { ts, backfilled, ...(timeZone && { timeZone, localTime: localTime(item, at, timeZone) }) },
    },
    runAt: ts,
    ...(queueName !== undefined && { queueName }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(priority !== undefined && { priority }),
    ...(jobKey !== undefined && { jobKey }),
    ...(jobKeyMode !== undefined && { jobKeyMode }),
    ...(flags !== undefined && { flags }),
  };
  return { item, identifier: item.identifier, job };
}

/** The run as the database reads it; without a job, it only counts as done. */
export function toRunSpec({ item, identifier }: CronRunRequest, job: CronJob | null): CronRunSpec {
  const {
    task = item.task,
    payload = {},
    runAt,
    queueName,
    maxAttempts,
    priority,
    jobKey,
    jobKeyMode,
    flags,
  } = job ?? {};
  return {
    identifier,
    task,
    payload,
    ...(runAt !== undefined && { run_at: runAt }),
    ...(queueName !== undefined && { queue_name: queueName }),
    ...(maxAttempts !== undefined && { max_attempts: maxAttempts }),
    ...(priority !== undefined && { priority }),
    // An empty key is no key.
    ...(jobKey && { job_key: jobKey }),
    ...(jobKeyMode !== undefined && { job_key_mode: jobKeyMode }),
    ...(flags !== undefined && { flags }),
    may_overlap: item.options.overlap !== "skip",
    is_wanted: job !== null,
  };
}
