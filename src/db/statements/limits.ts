import { shortPatienceMs, statement } from "../statement.ts";

/** A limit as the database has it. */
export interface DeclaredLimit {
  readonly scope: "task" | "shared";
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly path: readonly string[];
  readonly places: number | null;
  readonly period_ms: number | null;
  readonly burst: number;
  readonly weight: number;
  readonly weight_path: readonly string[] | null;
  readonly cost: number;
  readonly cost_path: readonly string[] | null;
  readonly tasks: readonly string[];
}

export const declareLimits = statement<
  { tasks: readonly string[]; definitions: readonly DeclaredLimit[]; declaredBy: string },
  { readonly changed: boolean }
>({
  name: "declare_limits",
  patienceMs: shortPatienceMs,
  values: ({ tasks, definitions, declaredBy }) => [tasks, JSON.stringify(definitions), declaredBy],
  text: "select graphile_worker._hathi_declare_limits($1::text[], $2::jsonb, $3::text) as changed",
});

/** Wakes workers if jobs wait that share a limit with these tasks, whose places were freed. */
export const announcePlaces = statement<{ taskIds: readonly number[]; clock: Date | null }, object>({
  name: "announce_places",
  patienceMs: shortPatienceMs,
  values: ({ taskIds, clock }) => [taskIds, clock],
  text: "select from graphile_worker._hathi_announce_places($1::integer[], $2::timestamptz)",
});

/** Lets the next parked job of each rate-limited task wait in line again, so that it starts with a token. */
export const freeRatedSuspects = statement<
  { taskIds: readonly number[] },
  {
    readonly freed: number;
    /** The tasks that have a rate. */
    readonly rated: number[];
  }
>({
  name: "free_rated_suspects",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ taskIds }) => [taskIds],
  text: `
    select graphile_worker._hathi_free_rated_suspects($1::integer[]) as freed,
      graphile_worker._hathi_rated_tasks($1::integer[]) as rated`,
});

export interface HeldBack {
  readonly id: string;
  readonly delayMs: number;
  /** The limit to hold; null for the job's own. */
  readonly limit: string | null;
  readonly reason: string;
}

/** Holds limits, keys or tasks back, as their jobs asked. */
export const holdLimits = statement<{ poolId: string; held: readonly HeldBack[] }, object>({
  name: "hold_limits",
  patienceMs: shortPatienceMs,
  values: ({ poolId, held }) => [
    poolId,
    held.map(({ id }) => id),
    held.map(({ delayMs }) => delayMs),
    held.map(({ limit }) => limit),
    held.map(({ reason }) => reason),
  ],
  text: "select from graphile_worker._hathi_hold_limits($1::text, $2::bigint[], $3::double precision[], $4::text[], $5::text[])",
});

export const tidyLimits = statement<Record<string, never>, object>({
  name: "tidy_limits",
  patienceMs: 60_000,
  values: () => [],
  text: "select from graphile_worker._hathi_tidy_limits()",
});

/** A schema that was not brought up to date has no limits. */
export const hasLimits = statement<{ schema: string }, { readonly has: boolean }>({
  name: "has_limits",
  values: ({ schema }) => [schema],
  text: "select to_regclass(pg_catalog.format('%I._hathi_limits', $1::text)) is not null as has",
});

/** Workers of other kinds beside the limits: jobs that they have locked, and connections that listen as they do. */
export const findLimitStrangers = statement<
  Record<string, never>,
  { readonly jobs: number; readonly listeners: number }
>({
  name: "find_limit_strangers",
  values: () => [],
  text: `
    select
      (
        select count(*)::float8
        from graphile_worker._private_jobs as job
        join graphile_worker._private_tasks as task on task.id = job.task_id
        join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
        where job.locked_at is not null and job.locked_by like 'worker-%'
      ) as jobs,
      (
        select count(*)::float8
        from pg_catalog.pg_stat_activity as session
        where session.datname = pg_catalog.current_database()
          and session.query ilike '%listen%jobs:insert%'
          and session.query not like '%hathi:%'
          and session.pid <> pg_catalog.pg_backend_pid()
      ) as listeners`,
});
