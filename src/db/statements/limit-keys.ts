import { statement } from "../statement.ts";

export interface WaitingKeysRow {
  readonly scope: "task" | "shared";
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly path: string[];
  readonly looked_at: number;
  readonly keys: { key: string; jobs: number }[];
}

/**
 * Of each limit with a key, the keys of the jobs that come next, those with the most jobs first. A bounded number of jobs of a bounded number of limits is looked
 * at, in the order in which they are claimed.
 */
export const listWaitingKeys = statement<{ lookAt: number; keys: number; limits: number }, WaitingKeysRow>({
  name: "list_waiting_keys",
  values: ({ lookAt, keys, limits }) => [lookAt, keys, limits],
  text: `
    select bound.scope, bound.name, bound.kind, bound.path, coalesce(sum(counted.jobs), 0)::float8 as looked_at,
      coalesce(
        pg_catalog.json_agg(pg_catalog.json_build_object('key', pg_catalog.substr(counted.key, 2), 'jobs', counted.jobs) order by counted.place)
          filter (where counted.place <= $2::bigint),
        '[]'
      ) as keys
    from (
      select limited.* from graphile_worker._hathi_limits as limited
      where pg_catalog.cardinality(limited.path) > 0
      order by limited.name, limited.id
      limit $3::bigint
    ) as bound
    left join lateral (
      select waiting.key, count(*) as jobs, pg_catalog.row_number() over (order by count(*) desc, waiting.key) as place
      from (
        select graphile_worker._hathi_limit_key(due.payload, bound.path) as key
        from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._private_tasks as task on task.identifier = member.task
        cross join lateral (
          select job.id from graphile_worker._private_jobs as job
          where job.task_id = task.id and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null and job.run_at <= now()
          order by job.priority, job.run_at, job.id
          limit $1::bigint
        ) as line
        join graphile_worker._private_jobs as due on due.id = line.id
        where bound.id = any (member.limit_ids)
        limit $1::bigint
      ) as waiting
      group by waiting.key
    ) as counted on true
    group by bound.scope, bound.name, bound.kind, bound.path
    order by bound.name, bound.scope, bound.kind, bound.path`,
});
