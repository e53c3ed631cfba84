import { statement } from "../statement.ts";
import { conditionByState } from "./job-state.ts";

/*
 * Jobs that run and jobs that are dead are few among the jobs that wait, and no index that workers need has them. These two are built where a
 * dashboard looks at a large table, and nowhere else: the first costs each claim one more index entry.
 */

/** States that may have an index of their own, and what it is called. */
export const stateIndexes = { running: "_hathi_jobs_running", dead: "_hathi_jobs_dead" } as const;

/** The statement that builds such an index. */
export function stateIndexText(state: keyof typeof stateIndexes): string {
  const condition = conditionByState[state].replaceAll("job.", "");
  return `create index concurrently ${stateIndexes[state]} on graphile_worker._private_jobs using btree (id)
    include (task_id, job_queue_id) where ${condition}`;
}

/** Whether both are there and can be used. */
export const hasStateIndexes = statement<{ schema: string }, { readonly has: boolean }>({
  name: "has_state_indexes",
  values: ({ schema }) => [schema, Object.values(stateIndexes)],
  text: `
    select count(*) = pg_catalog.cardinality($2::text[]) as has
    from pg_catalog.unnest($2::text[]) as wanted (name)
    join pg_catalog.pg_index as index on index.indexrelid = to_regclass(pg_catalog.format('%I.%I', $1::text, wanted.name))::oid
    where index.indisvalid`,
});

export interface FewJobsRow {
  /** Null if there may be more. */
  readonly ids: string[] | null;
}

export interface FewJobsParams {
  readonly task: string | null;
  readonly queue: string | null;
  /** Also jobs that run or are dead. */
  readonly isAnyState: boolean;
  /** So many jobs count as few. */
  readonly most: number;
}

/** How many running and dead jobs are looked through. */
const mostOthers = 100_000;

const others = (state: keyof typeof stateIndexes): string => `(
        select other.id, other.task_id, other.job_queue_id
        from graphile_worker._private_jobs as other
        where ${conditionByState[state].replaceAll("job.", "other.")}
        order by other.id
        limit ${mostOthers + 1}
      )`;

/**
 * The jobs of one task or queue, if they are few: found by the indexes that workers claim with, however many other jobs there are. Conditions are spelt as
 * those indexes have them.
 */
export const findFewJobs = statement<FewJobsParams, FewJobsRow>({
  name: "find_few_jobs",
  values: ({ task, queue, isAnyState, most }) => [task, queue, isAnyState, most],
  text: `
    with task as materialized (
      select id from graphile_worker._private_tasks where $1::text is null or identifier = $1::text limit 501
    ), queue as materialized (
      select id from graphile_worker._private_job_queues where queue_name = $2::text
    ), available as materialized (
      select waiting.id
      from task
      cross join lateral (
        (
          select job.id from graphile_worker._private_jobs as job
          where $2::text is null and job.task_id = task.id and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null
          order by job.priority, job.run_at, job.id
          limit $4::bigint + 1
        )
        union all
        (
          select job.id from graphile_worker._private_jobs as job
          where $2::text is null and job.task_id = task.id and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is not null
          order by job.priority, job.run_at, job.id
          limit $4::bigint + 1
        )
        union all
        (
          select job.id from graphile_worker._private_jobs as job
          where $2::text is not null and job.task_id = task.id and job.is_available and job.job_queue_id is not null
            and job.job_queue_id = (select queue.id from queue)
          order by job.priority, job.run_at, job.id
          limit $4::bigint + 1
        )
      ) as waiting
      limit $4::bigint + 1
    ), other as materialized (
      select * from (${others("running")} union all ${others("dead")}) as other where $3::boolean
    ), found as (
      select available.id from available
      union all
      select other.id from other
      where ($1::text is null or other.task_id in (select task.id from task))
        and ($2::text is null or other.job_queue_id in (select queue.id from queue))
    )
    select case
      when (select count(*) from task) <= 500 and (select count(*) from other) <= ${mostOthers}
        and (select count(*) from found) <= $4::bigint
      then coalesce((select pg_catalog.array_agg(found.id::text) from found), '{}')
    end as ids`,
});

/** Jobs that have failed in the way of a fingerprint, if these failures are few. */
export const findFailedJobs = statement<{ fingerprint: string; most: number }, FewJobsRow>({
  name: "find_failed_jobs",
  values: ({ fingerprint, most }) => [fingerprint, most],
  text: `
    select case when count(*) <= $2::bigint then coalesce(pg_catalog.array_agg(distinct failed.job_id::text), '{}') end as ids
    from (
      select attempt.job_id from graphile_worker._hathi_history_attempts as attempt
      where attempt.fingerprint = $1::text
      limit $2::bigint + 1
    ) as failed`,
});
