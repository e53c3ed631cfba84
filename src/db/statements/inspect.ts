import type { JobProgress } from "../../progress.ts";
import { type Statement, statement } from "../statement.ts";
import { conditionByState, stateOfJob } from "./job-state.ts";

export interface ListedJobRow {
  readonly id: string;
  readonly state: "waiting" | "scheduled" | "running" | "dead";
  readonly task_identifier: string;
  readonly queue_name: string | null;
  readonly priority: number;
  readonly run_at: Date;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly last_error: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly key: string | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
  readonly revision: number;
  readonly flags: { [flag: string]: true } | null;
  /** When it was cancelled, if it was and has not ended yet. */
  readonly cancelled_at: Date | null;
  /** How often its task has put it off. */
  readonly snoozes: number;
  /** How far it is, if it has reported that. */
  readonly progress: (JobProgress & { readonly reported_at: string }) | null;
}

const controlColumns = `
  (select cancelled_at from graphile_worker._hathi_job_cancellations where job_id = job.id) as cancelled_at,
  coalesce((select snoozes from graphile_worker._hathi_job_snoozes where job_id = job.id), 0) as snoozes,
  (select json_build_object('done', done, 'total', total, 'note', note, 'reported_at', reported_at)
    from graphile_worker._hathi_job_progress where job_id = job.id) as progress`;

export interface JobFilterParams {
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  readonly since: Date | null;
  readonly search: string | null;
}

type State = keyof typeof conditionByState;

/**
 * A page is one walk down the primary key from where the last page ended: no offset, no count, no sort. A filter only makes
 * the walk longer; where the planner knows that few rows match (those that run, one key) it reads the table once, in
 * parallel, or goes straight to the row.
 */
const matching = (state: State): string => `
  from graphile_worker._private_jobs as job
  where ${conditionByState[state]}
    and ($1::text is null or job.task_id = (select id from graphile_worker._private_tasks where identifier = $1::text))
    and ($2::text is null or job.job_queue_id = (select id from graphile_worker._private_job_queues where queue_name = $2::text))
    and ($3::text is null or job.key = $3::text)
    and ($4::timestamptz is null or job.created_at >= $4::timestamptz)
    and ($5::text is null
      or position(lower($5::text) in lower(job.payload::text)) > 0
      or position(lower($5::text) in lower(job.key)) > 0
      or position(lower($5::text) in lower(job.last_error)) > 0
      or job.task_id = any (array(
        select id from graphile_worker._private_tasks where position(lower($5::text) in lower(identifier)) > 0)))`;

const filterValues = ({ task, queue, key, since, search }: JobFilterParams): unknown[] => [
  task,
  queue,
  key,
  since,
  search,
];

/** One statement for each state, since each has its own best plan. */
function forEachState<Params, Row>(
  make: (state: State) => Statement<Params, Row>,
): Readonly<Record<State, Statement<Params, Row>>> {
  const states = Object.keys(conditionByState) as State[];
  return Object.fromEntries(states.map((state) => [state, make(state)])) as Record<State, Statement<Params, Row>>;
}

/** One page of jobs, newest first. */
export const listJobs = forEachState((state) =>
  statement<JobFilterParams & { before: string | null; limit: number }, ListedJobRow>({
    name: `list_jobs_${state}`,
    values: ({ before, limit, ...filter }) => [...filterValues(filter), before, limit],
    text: `
      with page as materialized (
        select job.id ${matching(state)}
          and ($6::bigint is null or job.id < $6::bigint)
        order by job.id desc
        limit $7
      )
      select
        job.id, ${stateOfJob} as state, task.identifier as task_identifier, queue.queue_name,
        job.priority, job.run_at, job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at,
        job.key, job.locked_at, job.locked_by, job.revision, job.flags, ${controlColumns}
      from page
      join graphile_worker._private_jobs as job on job.id = page.id
      join graphile_worker._private_tasks as task on task.id = job.task_id
      left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
      order by job.id desc`,
  }),
);

/** The ids of jobs that match, oldest first, from behind an id on. */
export const listJobIds = forEachState((state) =>
  statement<JobFilterParams & { after: string; limit: number }, { readonly id: string }>({
    name: `list_job_ids_${state}`,
    values: ({ after, limit, ...filter }) => [...filterValues(filter), after, limit],
    text: `
      select job.id ${matching(state)}
        and job.id > $6::bigint
      order by job.id
      limit $7::bigint`,
  }),
);

/** How many jobs match; reads all of them. */
export const countJobs = forEachState((state) =>
  statement<JobFilterParams, { readonly count: number }>({
    name: `count_jobs_${state}`,
    values: filterValues,
    text: `select count(*)::float8 as count ${matching(state)}`,
  }),
);

export interface ShownJobRow extends ListedJobRow {
  readonly payload: unknown;
}

/** Everything about one job, its payload included. */
export const showJob = statement<{ id: string }, ShownJobRow>({
  name: "show_job",
  values: ({ id }) => [id],
  text: `
    select
      job.id, ${stateOfJob} as state, task.identifier as task_identifier, queue.queue_name,
      job.payload, job.priority, job.run_at, job.attempts, job.max_attempts, job.last_error, job.created_at,
      job.updated_at, job.key, job.locked_at, job.locked_by, job.revision, job.flags, ${controlColumns}
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
    where job.id = $1::bigint`,
});

export interface QueueRow {
  readonly queue_name: string;
  readonly waiting: number;
  readonly scheduled: number;
  readonly next_run_at: Date | null;
  readonly locked_at: Date | null;
  readonly locked_by: string | null;
}

/**
 * Queues that are held or have jobs waiting, fullest first. Waiting jobs are counted in the index of queued jobs alone;
 * dead ones are not in it, and a queue with nothing but those is left out.
 */
export const listQueues = statement<{ limit: number; search: string | null }, QueueRow>({
  name: "list_queues",
  values: ({ limit, search }) => [limit, search],
  text: `
    with counts as materialized (
      select job_queue_id,
        count(*) filter (where run_at <= now())::float8 as waiting,
        count(*) filter (where run_at > now())::float8 as scheduled,
        min(run_at) as next_run_at
      from graphile_worker._private_jobs
      where is_available and job_queue_id is not null
      group by job_queue_id
    )
    select queue.queue_name, coalesce(counts.waiting, 0) as waiting, coalesce(counts.scheduled, 0) as scheduled,
      counts.next_run_at, nullif(queue.locked_at, 'infinity') as locked_at,
      nullif(queue.locked_by, 'hathi:paused') as locked_by
    from graphile_worker._private_job_queues as queue
    left join counts on counts.job_queue_id = queue.id
    where (counts.job_queue_id is not null or queue.locked_at is not null)
      and ($2::text is null or position(lower($2::text) in lower(queue.queue_name)) > 0)
    order by waiting desc, scheduled desc, queue.queue_name
    limit $1`,
});

export interface WaitingPayloadRow {
  readonly id: string;
  readonly task_identifier: string;
  readonly key: string | null;
  readonly payload: unknown;
}

/** The payloads of jobs that may still run, oldest first, from behind an id on. */
export const listPayloads = statement<{ tasks: readonly string[]; after: string; limit: number }, WaitingPayloadRow>({
  name: "list_payloads",
  values: ({ tasks, after, limit }) => [tasks, after, limit],
  text: `
    select job.id, task.identifier as task_identifier, job.key, job.payload
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.id > $2::bigint
      and job.attempts < job.max_attempts
      and task.identifier = any ($1::text[])
    order by job.id
    limit $3`,
});

export interface UncheckedTaskRow {
  readonly task_identifier: string;
  readonly jobs: number;
}

/** How many jobs that may still run are of other tasks than these, by task. */
export const countOtherTasks = statement<{ tasks: readonly string[] }, UncheckedTaskRow>({
  name: "count_other_tasks",
  values: ({ tasks }) => [tasks],
  text: `
    select task.identifier as task_identifier, count(*)::float8 as jobs
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.attempts < job.max_attempts
      and not task.identifier = any ($1::text[])
    group by task.identifier
    order by task.identifier`,
});
