import { statement } from "../statement.ts";

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
