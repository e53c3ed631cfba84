import { shortPatienceMs, statement } from "../statement.ts";
import { columnsOfPauses, unpausedTasks, whileAlive } from "./claim.ts";

/** Where the keys of each task are to be visited from: the last key that was served, and how much of its turn is used. */
export type Turns = { readonly [taskId: string]: readonly [key: string, used: number] };

export interface ClaimLimitedParams {
  readonly poolId: string;
  readonly workerNames: readonly string[];
  readonly taskIds: readonly number[];
  /** For free slots. */
  readonly wanted: number;
  /** Beyond them, where limits have places to spare. */
  readonly ahead: number;
  /** How many of those may be jobs that have a time to start. */
  readonly timedAhead: number;
  readonly perQueue: number;
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  readonly clock: Date | null;
  readonly withQueues: boolean;
  readonly turns: Turns;
  readonly nth: number;
  /** By how many milliseconds starts may be later than their slack allows, by the id of the task. */
  readonly lates: Record<string, number>;
  readonly relaxed: boolean;
  /** The last claim has found that places and tokens are plenty. */
  readonly mayBeLate?: boolean;
}

/**
 * When jobs start: how many of the claim come before them and how many they are, when the first one starts in milliseconds after the claim began in
 * the database, how much later each next one, how late each may be, and how much more was granted.
 */
export type StartRow = readonly [
  before: number,
  count: number,
  afterMs: number,
  stepMs: number,
  slackMs: number,
  lateMs: number,
];

export interface ClaimLimitedRow {
  /** JSON text of `ClaimedRow[]`. */
  readonly jobs: string | null;
  /** JSON text of `StartRow[]`. */
  readonly starts: string | null;
  readonly took_ms: number;
  /** When to claim again, if there was room for more; not above 0 if another transaction holds something. */
  readonly due_in_ms: number | null;
  /** Every limited task is held up as a whole: new jobs change nothing. */
  readonly is_blocked: boolean;
  /** There are only limits on everything, and most of their places and tokens are free. */
  readonly are_wide: boolean;
  readonly turns: Turns;
  readonly pauses: string | null;
  /** JSON text of `LimitReport`; null if no task is limited any more. */
  readonly limits: string | null;
}

/** Which tasks have limits, by id, and whether code has declared some of them. */
export type LimitReport = { readonly [taskId: string]: boolean };

export function valuesOfLimited(params: ClaimLimitedParams): unknown[] {
  return [
    params.poolId,
    params.taskIds,
    params.wanted,
    params.ahead,
    params.perQueue,
    params.forbidden,
    params.accepted,
    params.clock,
    params.withQueues,
    JSON.stringify(params.turns),
    params.nth,
    params.relaxed,
    params.workerNames,
    JSON.stringify(params.lates),
    params.timedAhead,
    params.mayBeLate ?? false,
  ];
}

export const columnsOfLimited = `jobs, starts, took_ms, due_in_ms, is_blocked, are_wide, new_turns as turns,
      ${columnsOfPauses("$13", "$8")},
      graphile_worker._hathi_report_limits($2::integer[]) as limits`;
export const claimedLimited = `graphile_worker._hathi_claim_limited(
      $1::text, ${unpausedTasks("$13", "$2", "$8")}, $3::integer, $4::integer, $5::integer, $6::text[], $7::text[], $8::timestamptz,
      $9::boolean, $10::jsonb, $11::integer, $12::boolean, $14::jsonb, $15::integer, $16::boolean
    )`;

const claimLimited = { patienceMs: shortPatienceMs, givesWay: true as const, values: valuesOfLimited };

/** Claims jobs of limited tasks, as far as their limits allow. */
export const claimLimitedJobs = statement<ClaimLimitedParams, ClaimLimitedRow>({
  ...claimLimited,
  name: "claim_limited_jobs",
  text: `
    select ${columnsOfLimited}
    from ${claimedLimited}`,
});

/** The same for a pool that sends heartbeats: gives no row, and claims nothing, if it was declared dead or is about to be. */
export const claimLimitedJobsAlive = statement<ClaimLimitedParams, ClaimLimitedRow>({
  ...claimLimited,
  name: "claim_limited_jobs_alive",
  text: `
    ${whileAlive}
    select ${columnsOfLimited}
    from alive
    cross join lateral ${claimedLimited}`,
});

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

export interface LimitIndexRow {
  readonly name: string;
  /** `w`: of waiting jobs; `r`: of locked ones. */
  readonly kind: "w" | "r";
  readonly task_id: number;
  readonly task: string;
  readonly path: string[];
  /** The path as an SQL literal. */
  readonly path_literal: string;
  readonly is_valid: boolean;
}

/** The indexes that the limits need, and whether they are there. */
export const listLimitIndexes = statement<Record<string, never>, LimitIndexRow>({
  name: "list_limit_indexes",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: `
    select wanted.name, wanted.kind, wanted.task_id, wanted.task, wanted.path, wanted.path_literal,
      graphile_worker._hathi_has_limit_index(wanted.kind, wanted.task_id, wanted.path) as is_valid
    from graphile_worker._hathi_limit_indexes() as wanted
    order by wanted.task_id, wanted.kind desc, wanted.name`,
});

/** The statement that builds such an index. Conditions are spelt as in `_hathi_find_turns`. */
export function limitIndexText({ name, kind, task_id: taskId, path, path_literal: literal }: LimitIndexRow): string {
  const key = `(graphile_worker._hathi_limit_key(payload, ${literal}::text[]) collate "C")`;
  const isWhole = path.length === 0;
  return kind === "r"
    ? `create index concurrently ${name} on graphile_worker._private_jobs using btree (${isWhole ? "task_id" : key})
        where ${isWhole ? "task_id" : "task_id + 0"} = ${taskId} and locked_at is not null`
    : `create index concurrently ${name} on graphile_worker._private_jobs using btree (priority, ${key}, run_at, id)
        where task_id + 0 = ${taskId} and locked_at is null and attempts < max_attempts and job_queue_id is null`;
}

export interface SetLimitParams {
  readonly name: string;
  readonly key: string | null;
  readonly places: number | null;
  readonly weight: number | null;
  readonly burst: number | null;
  readonly periodMs: number | null;
  readonly kind: string | null;
  readonly path: readonly string[] | null;
}

export const setLimit = statement<SetLimitParams, object>({
  name: "set_limit",
  patienceMs: shortPatienceMs,
  values: ({ name, key, places, weight, burst, periodMs, kind, path }) => [
    name,
    key,
    places,
    weight,
    burst,
    periodMs,
    kind,
    path,
  ],
  text: `
    select from graphile_worker.set_limit(
      $1::text, $2::text, $3::integer, $4::integer, $5::integer, $6::double precision * interval '1 millisecond', $7::text, $8::text[]
    )`,
});

export const clearLimit = statement<
  Pick<SetLimitParams, "name" | "key" | "kind" | "path">,
  { readonly cleared: boolean }
>({
  name: "clear_limit",
  patienceMs: shortPatienceMs,
  values: ({ name, key, kind, path }) => [name, key, kind, path],
  text: "select graphile_worker.clear_limit($1::text, $2::text, $3::text, $4::text[]) as cleared",
});

export interface LimitRow {
  readonly scope: "task" | "shared";
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly path: string[];
  /** With what was set at run time. */
  readonly places: number | null;
  readonly period_ms: number | null;
  readonly burst: number;
  readonly weight: number;
  readonly defined: number | null;
  readonly is_changed: boolean;
  readonly origin: "code" | "set";
  readonly declared_at: Date;
  readonly declared_by: string | null;
  readonly tasks: string[];
  readonly running: number;
  readonly waiting: number;
  readonly overrides:
    | { key: string; places: number | null; periodMs: number | null; burst: number | null; weight: number | null }[]
    | null;
  readonly holds: { key: string | null; until: string; reason: string | null }[] | null;
}

/** The limits that are in force. Counts stop at 10,001. */
export const listLimits = statement<{ countJobs: boolean }, LimitRow>({
  name: "list_limits",
  values: ({ countJobs }) => [countJobs],
  text: `
    select bound.scope, bound.name, bound.kind, bound.path, coalesce(whole.places, bound.places) as places,
      coalesce(whole.period_ms, bound.period_ms) as period_ms, coalesce(whole.burst, bound.burst) as burst,
      coalesce(whole.weight, bound.weight) as weight, bound.places as defined, whole.limit_id is not null as is_changed, bound.origin, bound.declared_at, bound.declared_by,
      member.tasks, counted.running, counted.waiting,
      (
        select pg_catalog.json_agg(pg_catalog.json_build_object(
          'key', pg_catalog.substr(o.key, 2), 'places', o.places, 'periodMs', o.period_ms, 'burst', o.burst, 'weight', o.weight
        ) order by o.key)
        from graphile_worker._hathi_limit_overrides as o
        where o.limit_id = bound.id and o.key <> '*'
      ) as overrides,
      (
        select pg_catalog.json_agg(pg_catalog.json_build_object(
          'key', case when h.key <> '*' then pg_catalog.substr(h.key, 2) end, 'until', h.until, 'reason', h.reason
        ) order by h.key)
        from graphile_worker._hathi_limit_holds as h
        where h.limit_id = bound.id and h.until > now()
      ) as holds
    from graphile_worker._hathi_limits as bound
    join lateral (
      select pg_catalog.array_agg(limited.task order by limited.task) as tasks
      from graphile_worker._hathi_limited_tasks as limited
      where bound.id = any (limited.limit_ids)
      having count(*) > 0
    ) as member on true
    left join graphile_worker._hathi_limit_overrides as whole on whole.limit_id = bound.id and whole.key = '*'
    cross join lateral (
      select
        (
          select count(*)::float8 from (
            select from graphile_worker._private_jobs as job
            where $1::boolean and job.locked_at is not null
              and job.task_id in (select task.id from graphile_worker._private_tasks as task where task.identifier = any (member.tasks))
            limit 10001
          ) as counted_rows
        ) as running,
        (
          select count(*)::float8 from (
            select from graphile_worker._private_jobs as job
            where $1::boolean and job.locked_at is null and job.attempts < job.max_attempts and job.run_at <= now()
              and job.task_id in (select task.id from graphile_worker._private_tasks as task where task.identifier = any (member.tasks))
            limit 10001
          ) as counted_rows
        ) as waiting
    ) as counted
    order by bound.name, bound.scope, bound.kind, bound.path`,
});

export interface JobLimitRow {
  readonly scope: "task" | "shared";
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly path: string[];
  /** Of the job; null for a limit on everything. */
  readonly key: string | null;
  readonly places: number | null;
  readonly period_ms: number | null;
  readonly taken: number | null;
  readonly holders: { id: string; task: string; by: string | null }[] | null;
  /** Due jobs of the same limit and key that come first. */
  readonly ahead: number;
  /** How many of those may be jobs that have a time to start. */
  readonly timedAhead: number;
  /** There may be more than were counted. */
  readonly is_cut: boolean;
  readonly free_at: Date | null;
  readonly held_until: Date | null;
  readonly hold_reason: string | null;
}

/** Jobs in front that are looked at for those with the same key. */
const mostAhead = 200;

/** The first due jobs in front of `job` among the tasks of its limit, in the order of the indexes that they are claimed with. */
const dueAhead = (columns: string, most: number): string => `
        select line.* from pg_catalog.unnest(own.task_ids) as sharing (id)
        cross join lateral (${["is null", "is not null"]
          .map(
            (queued) => `(
          select ${columns} from graphile_worker._private_jobs as other
          where other.task_id = sharing.id and other.locked_at is null and other.attempts < other.max_attempts and other.job_queue_id ${queued}
            and other.run_at <= now() and (other.priority, other.run_at, other.id) < (job.priority, job.run_at, job.id)
          order by other.priority, other.run_at, other.id
          limit ${most}
        )`,
          )
          .join(" union all ")}) as line
        limit ${most}`;

/** What each limit of a waiting job says about it. */
export const explainLimits = statement<{ id: string }, JobLimitRow>({
  name: "explain_limits",
  values: ({ id }) => [id],
  text: `
    select bound.scope, bound.name, bound.kind, bound.path,
      case when pg_catalog.cardinality(bound.path) > 0 then pg_catalog.substr(own.key, 2) end as key,
      coalesce(mine.places, whole.places, bound.places) as places, coalesce(mine.period_ms, whole.period_ms, bound.period_ms) as period_ms,
      case when bound.kind = 'concurrency'
        then graphile_worker._hathi_count_locked(own.task_ids, bound.path, own.key)
      end as taken,
      case when bound.kind = 'concurrency' then (
        select pg_catalog.json_agg(pg_catalog.json_build_object('id', holder.id::text, 'task', holder.identifier, 'by', holder.locked_by))
        from (
          select other.id, holding.identifier, other.locked_by
          from graphile_worker._private_jobs as other
          join graphile_worker._private_tasks as holding on holding.id = other.task_id
          where other.locked_at is not null and other.task_id = any (own.task_ids)
            and (pg_catalog.cardinality(bound.path) = 0 or graphile_worker._hathi_limit_key(other.payload, bound.path) = own.key)
          order by other.locked_at, other.id
          limit 5
        ) as holder
      ) end as holders,
      case when pg_catalog.cardinality(bound.path) = 0 then whole_line.ahead else key_line.ahead end as ahead,
      case when pg_catalog.cardinality(bound.path) = 0 then whole_line.ahead > 10000 else key_line.is_cut end as is_cut,
      (
        select rate.free_at from graphile_worker._hathi_limit_rates as rate
        where rate.limit_id = bound.id and rate.key = own.key and rate.free_at > now()
      ) as free_at,
      held.until as held_until, held.reason as hold_reason
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    cross join lateral (
      select case when pg_catalog.cardinality(bound.path) = 0 then '*' else graphile_worker._hathi_limit_key(job.payload, bound.path) end as key,
        array(
          select sharing.id from graphile_worker._hathi_limited_tasks as other
          join graphile_worker._private_tasks as sharing on sharing.identifier = other.task
          where bound.id = any (other.limit_ids)
        ) as task_ids
    ) as own
    cross join lateral (
      select count(*)::integer as ahead from (${dueAhead("", 10_001)}) as other where pg_catalog.cardinality(bound.path) = 0
    ) as whole_line
    cross join lateral (
      select count(*) filter (where graphile_worker._hathi_limit_key(other.payload, bound.path) = own.key)::integer as ahead,
        count(*) >= ${mostAhead} as is_cut
      from (${dueAhead("other.id", mostAhead)}) as line
      join graphile_worker._private_jobs as other on other.id = line.id
      where pg_catalog.cardinality(bound.path) > 0
    ) as key_line
    left join graphile_worker._hathi_limit_overrides as whole on whole.limit_id = bound.id and whole.key = '*'
    left join graphile_worker._hathi_limit_overrides as mine on mine.limit_id = bound.id and mine.key = own.key
    left join graphile_worker._hathi_limit_holds as held
      on held.limit_id = bound.id and held.key in (own.key, '*') and held.until > now()
    where job.id = $1::bigint
    order by bound.id`,
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

/** Indexes for limits that are being built. */
export const listLimitBuilds = statement<
  Record<string, never>,
  { readonly name: string; readonly phase: string; readonly percent: number }
>({
  name: "list_limit_builds",
  values: () => [],
  text: `
    select class.relname as name, progress.phase,
      case when progress.blocks_total > 0 then (100 * progress.blocks_done / progress.blocks_total)::integer else 0 end as percent
    from pg_catalog.pg_stat_progress_create_index as progress
    join pg_catalog.pg_class as class on class.oid = progress.index_relid
    where progress.datname = pg_catalog.current_database()`,
});
