import type { KeepRule } from "../../kept-history.ts";
import { shortPatienceMs, statement } from "../statement.ts";
import { type RuledJob, rulingValues } from "./control.ts";
import type { Release, UnwrittenRow } from "./settle.ts";

/** What is kept of the jobs of each task that a statement settles; elements at the same place belong together. */
export interface KeptTasks {
  readonly taskIds: readonly number[];
  /** `outcomes`, `full` or `none` (results only). */
  readonly keptAs: readonly string[];
  readonly days: readonly number[];
  readonly resultDays: readonly number[];
  /** A process may be waiting for jobs of this task. */
  readonly areAwaited: readonly boolean[];
  readonly redact: readonly string[];
}

/** What is kept for so many days, by the id of the task. */
export function toKeptTasks(
  rules: ReadonlyMap<number, KeepRule>,
  days: "completedDays" | "failedDays",
  redact: readonly string[],
): KeptTasks {
  const all = [...rules.values()];
  return {
    taskIds: [...rules.keys()],
    keptAs: all.map(({ keptAs }) => keptAs),
    days: all.map((rule) => rule[days]),
    resultDays: all.map(({ resultDays }) => resultDays),
    areAwaited: all.map(({ keepsResult }) => keepsResult),
    redact,
  };
}

/** As `completeJobs`, and keeps what became of the jobs. */
export const completeJobsKept = statement<
  {
    poolId: string;
    /** Sorted. */
    jobIds: readonly string[];
    /** Null if all are first attempts. */
    attempts: readonly number[] | null;
    runs: readonly number[];
    /** As JSON, at the places of their jobs; null if there are none. */
    results: readonly (string | null)[] | null;
    kept: KeptTasks;
  } & Release,
  UnwrittenRow
>({
  name: "complete_jobs_kept",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, jobIds, queueIds, endedIds = [], attempts, runs, results, kept }) => [
    poolId,
    `{${jobIds.join(",")}}`,
    queueIds,
    endedIds,
    attempts && `{${attempts.join(",")}}`,
    `{${runs.join(",")}}`,
    results,
    kept.taskIds,
    kept.keptAs,
    kept.days,
    kept.resultDays,
    kept.redact,
  ],
  text: `
    select lost, held, held_queues
    from graphile_worker._hathi_complete_jobs_kept(
      $1::text, $2::bigint[], $3::integer[], $4::bigint[], $5::integer[], $6::integer[], $7::text[], $8::integer[], $9::text[],
      $10::integer[], $11::integer[], $12::text[]
    )`,
});

/** A job that did not succeed, with what is kept of it. */
export interface KeptEnd {
  readonly id: string;
  readonly attempt: number;
  readonly error: string;
  /** JSON; null keeps the payload. */
  readonly payload: string | null;
  readonly runMs: number;
  readonly errorClass: string;
  readonly fingerprint: string;
  readonly stack: string | null;
}

const keptValues = (jobs: readonly KeptEnd[], kept: KeptTasks): unknown[] => [
  jobs.map(({ runMs }) => runMs),
  jobs.map(({ errorClass }) => errorClass),
  jobs.map(({ fingerprint }) => fingerprint),
  jobs.map(({ stack }) => stack),
  kept.taskIds,
  kept.keptAs,
  kept.days,
  kept.areAwaited,
  kept.redact,
];

/** As `failJobs`, and keeps what became of the jobs. */
export const failJobsKept = statement<
  { poolId: string; jobs: readonly KeptEnd[]; kept: KeptTasks; isInDoubt: boolean } & Release,
  UnwrittenRow
>({
  name: "fail_jobs_kept",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, jobs, kept, queueIds, endedIds = [], isInDoubt }) => [
    poolId,
    jobs.map(({ id }) => id),
    jobs.map(({ attempt }) => attempt),
    jobs.map(({ error }) => error),
    jobs.map(({ payload }) => payload),
    queueIds,
    endedIds,
    isInDoubt,
    ...keptValues(jobs, kept),
  ],
  text: `
    select lost, held, held_queues, cancelled
    from graphile_worker._hathi_fail_jobs_kept(
      $1::text, $2::bigint[], $3::integer[], $4::text[], $5::text[], $6::integer[], $7::bigint[], $8::boolean,
      $9::integer[], $10::text[], $11::text[], $12::text[], $13::integer[], $14::text[], $15::integer[], $16::boolean[], $17::text[]
    )`,
});

/** As `ruleJobs`, and keeps what became of the jobs. */
export const ruleJobsKept = statement<
  { poolId: string; jobs: readonly (RuledJob & KeptEnd)[]; kept: KeptTasks; isInDoubt: boolean } & Release,
  UnwrittenRow
>({
  name: "rule_jobs_kept",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: (params) => [...rulingValues(params), ...keptValues(params.jobs, params.kept)],
  text: `
    select lost, held, held_queues, refused, cancelled
    from graphile_worker._hathi_rule_jobs_kept(
      $1::text, $2::bigint[], $3::integer[], $4::text[], $5::text[], $6::text[], $7::double precision[], $8::timestamptz[],
      $9::integer[], $10::text[], $11::integer[], $12::bigint[], $13::boolean,
      $14::integer[], $15::text[], $16::text[], $17::text[], $18::integer[], $19::text[], $20::integer[], $21::boolean[], $22::text[]
    )`,
});

/** An attempt that ended with the death of its worker. */
export interface CrashedAttempt {
  readonly id: string;
  readonly attempt: number;
  readonly waitMs: number;
  readonly runMs: number;
  readonly workerId: string;
  readonly errorClass: string;
  readonly fingerprint: string;
}

/** Keeps attempts whose jobs have been written as failed, by the transaction that did so. */
export const keepCrashed = statement<{ crashed: readonly CrashedAttempt[]; kept: KeptTasks }, object>({
  name: "keep_crashed",
  patienceMs: shortPatienceMs,
  values: ({ crashed, kept }) => [
    crashed.map(({ id }) => id),
    crashed.map(({ attempt }) => attempt),
    crashed.map(({ waitMs }) => waitMs),
    crashed.map(({ runMs }) => runMs),
    crashed.map(({ workerId }) => workerId),
    crashed.map(({ errorClass }) => errorClass),
    crashed.map(({ fingerprint }) => fingerprint),
    kept.taskIds,
    kept.keptAs,
    kept.days,
    kept.areAwaited,
    kept.redact,
  ],
  text: `
    select from graphile_worker._hathi_keep_crashed(
      $1::bigint[], $2::integer[], $3::double precision[], $4::double precision[], $5::text[], $6::text[], $7::text[],
      $8::integer[], $9::text[], $10::integer[], $11::boolean[], $12::text[]
    )`,
});

/** Makes and drops partitions; true if there may be more to do, null if another session is at it. Otherwise those of today are there. */
export const tendHistory = statement<{ days: readonly number[] }, { readonly may_be_more: boolean | null }>({
  name: "tend_history",
  patienceMs: 60_000,
  values: ({ days }) => [days],
  text: "select graphile_worker._hathi_tend_history($1::integer[]) as may_be_more",
});

export interface HistoryRow {
  readonly id: string;
  readonly task_identifier: string;
  readonly queue_name: string | null;
  readonly key: string | null;
  readonly attempt: number;
  /** Null where it was not kept: of successes without a result. */
  readonly max_attempts: number | null;
  readonly outcome: "succeeded" | "failed" | "permanentlyFailed" | "cancelled" | "snoozed";
  readonly settled_at: Date;
  /** From the moment the job could have started to its start. */
  readonly wait_ms: number;
  readonly run_ms: number;
  readonly worker_id: string;
  readonly error: string | null;
  readonly error_class: string | null;
  readonly fingerprint: string | null;
}

const historyColumns = `job_id::text as id, task_identifier, queue_name, key, attempt, max_attempts, outcome, settled_at, wait_ms, run_ms,
      worker_id, error, error_class, fingerprint`;

/** Where a page ended, exactly: a Date has no microseconds. */
const place = `to_char(settled_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '/' || entry::text || '/' || job_id::text as place`;

export interface HistoryFilterParams {
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  readonly outcomes: readonly string[] | null;
  readonly fingerprint: string | null;
  readonly since: Date | null;
  readonly until: Date | null;
}

/** One page, newest first. */
export const listHistory = statement<
  HistoryFilterParams & { after: readonly [at: string, entry: string, id: string] | null; limit: number },
  HistoryRow & { readonly place: string }
>({
  name: "list_history",
  values: ({ task, queue, key, outcomes, fingerprint, since, until, after, limit }) => [
    task,
    queue,
    key,
    outcomes,
    fingerprint,
    since,
    until,
    ...(after ?? [null, null, null]),
    limit,
  ],
  text: `
    select ${historyColumns}, ${place}
    from graphile_worker._hathi_list_history(
      $1::text, $2::text, $3::text, $4::text[], $5::text, $6::timestamptz, $7::timestamptz, $8::timestamptz, $9::bigint, $10::bigint, $11::integer
    )`,
});

export interface FoundHistoryRow extends HistoryRow {
  readonly stack: string | null;
  readonly created_at: Date | null;
  readonly payload: unknown;
  readonly result: unknown;
  readonly has_result: boolean;
}

/** Everything that is kept of these jobs; of each, oldest first. */
export const findHistory = statement<{ ids: readonly string[] }, FoundHistoryRow>({
  name: "find_history",
  values: ({ ids }) => [ids],
  text: `
    select ${historyColumns}, stack, created_at, payload, result, result is not null as has_result
    from graphile_worker._hathi_find_history($1::bigint[])`,
});
