import { type Statement, statement } from "../statement.ts";
import { conditionByState, stateOfJob } from "./job-state.ts";

export interface ListedJobRow {
  readonly id: string;
  readonly state: "ready" | "scheduled" | "running" | "failed";
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
}

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
        job.key, job.locked_at, job.locked_by, job.revision, job.flags
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
      limit $7`,
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
