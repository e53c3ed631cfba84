import type { KeepRule } from "../../kept-history.ts";
import { type Statement, shortPatienceMs, statement } from "../statement.ts";
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

export interface ErrorGroupRow {
  readonly fingerprint: string;
  readonly task_identifier: string;
  readonly error_class: string;
  readonly count: number;
  /** Null if they were not looked at: without `since` and `lookAt`. */
  readonly jobs: number | null;
  readonly first_at: Date;
  readonly last_at: Date;
  /** The latest of them. */
  readonly example_id: string;
  readonly example_error: string;
  /** Failures by step, from 1 on; null without steps. */
  readonly trend: { readonly [step: string]: number } | null;
}

export interface ErrorGroupsParams {
  readonly task: string | null;
  readonly fingerprint: string | null;
  readonly since: Date | null;
  readonly limit: number;
  /** Of the latest failures, only so many are grouped. */
  readonly lookAt: number | null;
  /** Steps from `since` until now. */
  readonly steps: number | null;
}

/** The latest in the order of an index, so many at most. */
const latest = (condition: string): string => `(
        select attempt.fingerprint, attempt.job_id, attempt.settled_at
        from graphile_worker._hathi_history_attempts as attempt
        where ${condition} and attempt.fingerprint is not null
          and ($3::timestamptz is null or attempt.settled_at >= $3::timestamptz)
        order by attempt.settled_at desc
        limit $5::bigint
      )`;

/** All failures that are kept, in groups; the latest first. Reads the groups, not the failures. */
export const listAllErrorGroups = statement<Pick<ErrorGroupsParams, "task" | "fingerprint" | "limit">, ErrorGroupRow>({
  name: "list_all_error_groups",
  values: ({ task, fingerprint, limit }) => [task, fingerprint, limit],
  text: `
    with groups as materialized (
      select known.fingerprint, min(known.task_identifier) as task_identifier, min(known.error_class) as error_class,
        sum(known.failures)::float8 as count, min(known.first_at) as first_at, max(known.last_at) as last_at,
        (pg_catalog.array_agg(known.expires_on order by known.last_at desc))[1] as expires_on
      from graphile_worker._hathi_error_groups as known
      where ($1::text is null or known.task_identifier = $1::text)
        and ($2::text is null or known.fingerprint = $2::text)
      group by known.fingerprint
      order by last_at desc
      limit $3::integer
    )
    select groups.fingerprint, groups.task_identifier, groups.error_class, groups.count, null::float8 as jobs, groups.first_at, groups.last_at,
      example.job_id::text as example_id, example.error as example_error, null::json as trend
    from groups
    cross join lateral (
      select attempt.job_id, attempt.error
      from graphile_worker._hathi_history_attempts as attempt
      where attempt.expires_on = groups.expires_on and attempt.fingerprint = groups.fingerprint and attempt.settled_at = groups.last_at
      limit 1
    ) as example
    order by groups.last_at desc`,
});

const latestOfBoth = (condition: string): string =>
  `${latest(`attempt.outcome = 'failed' ${condition}`)} union all ${latest(`attempt.outcome = 'permanentlyFailed' ${condition}`)}`;

/** One statement for each way to ask, since each has its own index. */
const latestFailures = {
  all: latestOfBoth("and $1::text is null and $2::text is null"),
  task: latestOfBoth("and attempt.task_identifier = $1::text and $2::text is null"),
  fingerprint: latest(
    "attempt.fingerprint = $2::text and attempt.outcome in ('failed', 'permanentlyFailed') and ($1::text is null or attempt.task_identifier = $1::text)",
  ),
};

/** Failures since a moment, or the latest ones, by what makes them the same; the latest first. */
const errorGroups = (by: keyof typeof latestFailures): Statement<ErrorGroupsParams, ErrorGroupRow> =>
  statement({
    name: `list_error_groups_${by}`,
    values: ({ task, fingerprint, since, limit, lookAt, steps }) => [task, fingerprint, since, limit, lookAt, steps],
    text: `
    with looked as materialized (
      select found.fingerprint, found.job_id, found.settled_at
      from (${latestFailures[by]}) as found
      order by found.settled_at desc
      limit $5::bigint
    ), groups as materialized (
      select looked.fingerprint, count(*)::float8 as count, pg_catalog.count(distinct looked.job_id)::float8 as jobs,
        min(looked.settled_at) as first_at, max(looked.settled_at) as last_at
      from looked
      group by looked.fingerprint
      order by last_at desc
      limit $4::integer
    ), stepped as (
      select looked.fingerprint, count(*) as count, least($6::integer, width_bucket(
        extract(epoch from looked.settled_at)::float8, extract(epoch from $3::timestamptz)::float8,
        extract(epoch from now())::float8 + 0.001::float8, $6::integer)) as step
      from looked
      where $6::integer is not null
      group by looked.fingerprint, step
    ), trends as (
      select stepped.fingerprint, pg_catalog.jsonb_object_agg(stepped.step, stepped.count) as trend
      from stepped
      group by stepped.fingerprint
    )
    select groups.fingerprint, example.task_identifier, example.error_class, groups.count, groups.jobs, groups.first_at, groups.last_at,
      example.job_id::text as example_id, example.error as example_error, trends.trend
    from groups
    cross join lateral (
      select attempt.job_id, attempt.task_identifier, attempt.error_class, attempt.error
      from graphile_worker._hathi_history_attempts as attempt
      where attempt.fingerprint = groups.fingerprint and attempt.settled_at = groups.last_at
      limit 1
    ) as example
    left join trends on trends.fingerprint = groups.fingerprint
    order by groups.last_at desc`,
  });

export const listErrorGroups = {
  all: errorGroups("all"),
  task: errorGroups("task"),
  fingerprint: errorGroups("fingerprint"),
};
