import { shortPatienceMs, statement } from "../statement.ts";
import type { VacuumHolderRow } from "./diagnose.ts";

/** Jobs of one task. */
export interface TaskFigures {
  readonly task: string;
  readonly waiting: number;
  readonly scheduled: number;
  readonly running: number;
  readonly dead: number;
  /** There are at least so many waiting and scheduled jobs; counting stopped there. */
  readonly isCapped: boolean;
  /** How long the oldest job that could run has been due; null if there is none. */
  readonly oldestSeconds: number | null;
}

/** Jobs of the tasks that have a limit, or several limits of one name. */
export interface LimitFigures {
  readonly scope: "task" | "shared";
  readonly limit: string;
  readonly waiting: number;
  readonly running: number;
}

/** Figures about the whole table; empty before they were collected for the first time. */
export interface RollupData {
  readonly tasks?: readonly TaskFigures[];
  readonly limits?: readonly LimitFigures[];
  /** Running and dead jobs are scaled up from a sample. */
  readonly isSampled?: boolean;
  readonly holders?: readonly VacuumHolderRow[];
  readonly table?: { readonly live: number; readonly dead: number; readonly bytes: number } | null;
}

export interface RollupRow {
  readonly data: RollupData;
  /** Null before figures were collected for the first time. */
  readonly age_ms: number | null;
  readonly read_in_ms: number;
  readonly to_report: readonly VacuumHolderRow[];
}

export interface ReadRollupParams {
  readonly reader: string;
  readonly maxAgeMs: number;
  readonly warnAfterSeconds: number;
  /** Waiting jobs that are counted of one task, at most. */
  readonly cap: number;
  readonly maxTasks: number;
  /** Pages that are read to count running and dead jobs, at most. */
  readonly maxPages: number;
}

/** Gives the figures, and collects them first if it is time and no other worker does. */
export const readRollup = statement<ReadRollupParams, RollupRow>({
  name: "read_rollup",
  patienceMs: shortPatienceMs,
  values: ({ reader, maxAgeMs, warnAfterSeconds, cap, maxTasks, maxPages }) => [
    reader,
    maxAgeMs,
    warnAfterSeconds,
    cap,
    maxTasks,
    maxPages,
  ],
  text: `
    select data, age_ms, read_in_ms, to_report
    from graphile_worker._hathi_read_rollup($1::text, $2::int, $3::float8, $4::int, $5::int, $6::int)`,
});

/** The figures as they were collected last. */
export const peekRollup = statement<Record<string, never>, Pick<RollupRow, "data" | "age_ms">>({
  name: "peek_rollup",
  values: () => [],
  text: `
    select data, extract(epoch from now() - refreshed_at)::float8 * 1000::float8 as age_ms
    from graphile_worker._hathi_rollup`,
});

/** What was counted of one task; bins as in util/log-bins.ts. */
export interface CountedTimes {
  readonly task: string;
  readonly waits: readonly number[];
  readonly runs: readonly number[];
  readonly succeeded: number;
  /** Attempts, and those among them that were the last. */
  readonly failed: number;
  readonly permanently_failed: number;
}

/** Adds counts to those of the current minute. */
export const recordTimes = statement<{ counted: readonly CountedTimes[] }, Record<string, never>>({
  name: "record_times",
  patienceMs: shortPatienceMs,
  values: ({ counted }) => [JSON.stringify(counted)],
  text: `
    select from graphile_worker._hathi_record_times($1::jsonb)`,
});

/** The sums of the last so many seconds, by task. Older times are kept by the hour and by the day, so a little more is counted. */
export const readTimes = statement<{ seconds: number }, CountedTimes>({
  name: "read_times",
  patienceMs: shortPatienceMs,
  values: ({ seconds }) => [seconds],
  text: `
    with recent as (
      select times.period, times.starts_at, times.task, times.waits, times.runs, times.succeeded, times.failed, times.permanently_failed
      from graphile_worker._hathi_job_times as times
      where times.starts_at > now() - (
        $1::float8 * interval '1 second' + case times.period when 'day' then interval '1 day' when 'hour' then interval '1 hour' else interval '1 minute' end
      )
    ), summed as (
      select recent.task, bin.n, sum(bin.waits) as waits, sum(bin.runs) as runs
      from recent
      cross join lateral rows from (
        pg_catalog.unnest(recent.waits), pg_catalog.unnest(recent.runs)
      ) with ordinality as bin (waits, runs, n)
      group by recent.task, bin.n
    ), bins as (
      select summed.task,
        pg_catalog.array_agg(coalesce(summed.waits, 0)::float8 order by summed.n) as waits,
        pg_catalog.array_agg(coalesce(summed.runs, 0)::float8 order by summed.n) as runs
      from summed
      group by summed.task
    )
    select bins.task, bins.waits, bins.runs, sum(recent.succeeded)::float8 as succeeded, sum(recent.failed)::float8 as failed,
      sum(recent.permanently_failed)::float8 as permanently_failed
    from bins
    join recent on recent.task = bins.task
    group by bins.task, bins.waits, bins.runs
    order by bins.task`,
});

export interface StepParams {
  readonly seconds: number;
  readonly stepSeconds: number;
  readonly task: string | null;
}

/** Times that were recorded for no more than a step, with the step that they belong to. Whole steps: the first one begins before the span does. */
const recentSteps = `
  with recent as (
    select pg_catalog.to_timestamp(floor(extract(epoch from times.starts_at)::float8 / $2::float8) * $2::float8) as at,
      times.task, times.waits, times.runs, times.succeeded, times.failed
    from graphile_worker._hathi_job_times as times
    where times.period = any (case when $2::float8 >= 86400::float8 then '{minute,hour,day}' when $2::float8 >= 3600::float8 then '{minute,hour}' else '{minute}' end::text[])
      and times.starts_at >= pg_catalog.to_timestamp(floor((extract(epoch from now())::float8 - $1::float8) / $2::float8) * $2::float8)
      and ($3::text is null or times.task = $3::text)
  )`;

const stepValues = ({ seconds, stepSeconds, task }: StepParams): unknown[] => [seconds, stepSeconds, task];

export const readTimesByStep = statement<
  StepParams,
  Pick<CountedTimes, "waits" | "runs" | "succeeded" | "failed"> & { readonly at: Date }
>({
  name: "read_times_by_step",
  patienceMs: shortPatienceMs,
  values: stepValues,
  text: `
    ${recentSteps}, summed as (
      select recent.at, bin.n, sum(bin.waits) as waits, sum(bin.runs) as runs
      from recent
      cross join lateral rows from (
        pg_catalog.unnest(recent.waits), pg_catalog.unnest(recent.runs)
      ) with ordinality as bin (waits, runs, n)
      group by recent.at, bin.n
    ), bins as (
      select summed.at,
        pg_catalog.array_agg(coalesce(summed.waits, 0)::float8 order by summed.n) as waits,
        pg_catalog.array_agg(coalesce(summed.runs, 0)::float8 order by summed.n) as runs
      from summed
      group by summed.at
    ), counted as (
      select recent.at, sum(recent.succeeded)::float8 as succeeded, sum(recent.failed)::float8 as failed
      from recent
      group by recent.at
    )
    select counted.at, bins.waits, bins.runs, counted.succeeded, counted.failed
    from counted
    join bins on bins.at = counted.at
    order by counted.at`,
});

export const readAttemptsByTask = statement<
  StepParams,
  { readonly task: string; readonly at: Date; readonly attempts: number; readonly failed: number }
>({
  name: "read_attempts_by_task",
  patienceMs: shortPatienceMs,
  values: stepValues,
  text: `
    ${recentSteps}
    select recent.task, recent.at, sum(recent.succeeded + recent.failed)::float8 as attempts, sum(recent.failed)::float8 as failed
    from recent
    group by recent.task, recent.at
    order by recent.task, recent.at`,
});
