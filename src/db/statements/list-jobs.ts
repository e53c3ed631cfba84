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
  /** Since when an attempt has been running that was failed for taking too long. */
  readonly overrunning_since: Date | null;
  /** How far it is, if it has reported that. */
  readonly progress: (JobProgress & { readonly reported_at: string }) | null;
}

const controlColumns = `
  (select cancelled_at from graphile_worker._hathi_job_cancellations where job_id = job.id) as cancelled_at,
  coalesce((select snoozes from graphile_worker._hathi_job_snoozes where job_id = job.id), 0) as snoozes,
  (select min(overrun.started_at) from graphile_worker._hathi_job_overruns as overrun
    where overrun.job_id = job.id
      and not exists (select from graphile_worker._hathi_former_workers as former where former.id = overrun.worker_id)
  ) as overrunning_since,
  (select json_build_object('done', done, 'total', total, 'note', note, 'reported_at', reported_at)
    from graphile_worker._hathi_job_progress where job_id = job.id) as progress`;

export interface JobFilterParams {
  readonly task: string | null;
  readonly queue: string | null;
  readonly key: string | null;
  readonly since: Date | null;
  readonly search: string | null;
  readonly before: Date | null;
  readonly error: string | null;
  /** Ids from and up to these. */
  readonly from: string | null;
  readonly upTo: string | null;
  /** What a search must not find in payloads. */
  readonly redact: readonly string[] | null;
}

type State = keyof typeof conditionByState;

/**
 * A page is one walk down the primary key from where the last page ended: no offset, no count, no sort. A filter only makes
 * the walk longer; where the planner knows that few rows match (those that run, one key) it reads the table once, in
 * parallel, or goes straight to the row.
 */
const matching = (state: State, among = ""): string => `
  from graphile_worker._private_jobs as job
  where ${conditionByState[state]}
    and ($1::text is null or job.task_id = (select id from graphile_worker._private_tasks where identifier = $1::text))
    and ($2::text is null or job.job_queue_id = (select id from graphile_worker._private_job_queues where queue_name = $2::text))
    and ($3::text is null or job.key = $3::text)
    and ($4::timestamptz is null or job.created_at >= $4::timestamptz)
    and ($5::text is null
      or (
        position(lower($5::text) in lower(job.payload::text)) > 0
        and ($10::text[] is null or position(lower($5::text) in lower(graphile_worker._hathi_redact(job.payload, $10::text[])::text)) > 0)
      )
      or position(lower($5::text) in lower(job.key)) > 0
      or position(lower($5::text) in lower(job.last_error)) > 0
      or job.task_id = any (array(
        select id from graphile_worker._private_tasks where position(lower($5::text) in lower(identifier)) > 0)))
    and ($6::timestamptz is null or job.created_at < $6::timestamptz)
    and ($7::text is null or (job.last_error is not null and exists (
      select from graphile_worker._hathi_history_attempts as attempt
      where attempt.job_id = job.id and attempt.attempt = job.attempts and attempt.fingerprint = $7::text)))
    and job.id between $8::bigint and $9::bigint ${among}`;

const filterValues = (filter: JobFilterParams): unknown[] => [
  filter.task,
  filter.queue,
  filter.key,
  filter.since,
  filter.search,
  filter.before,
  filter.error,
  filter.from ?? "0",
  filter.upTo ?? largestId,
  filter.redact,
];

/** Only these can match, as `planLook` found. */
const amongIds = "and job.id = any ($12::bigint[])";

/** Bounds are always there, so that every plan walks between them. */
const largestId = String(2n ** 63n - 1n);

/** One statement for each state, since each has its own best plan. */
function forEachState<Params, Row>(
  make: (state: State) => Statement<Params, Row>,
): Readonly<Record<State, Statement<Params, Row>>> {
  const states = Object.keys(conditionByState) as State[];
  return Object.fromEntries(states.map((state) => [state, make(state)])) as Record<State, Statement<Params, Row>>;
}

const pageText = (state: State, among = ""): string => `
      with page as materialized (
        select job.id ${matching(state, among)}
        order by job.id desc
        limit $11
      )
      select
        job.id, ${stateOfJob} as state, task.identifier as task_identifier, queue.queue_name,
        job.priority, job.run_at, job.attempts, job.max_attempts, job.last_error, job.created_at, job.updated_at,
        job.key, job.locked_at, job.locked_by, job.revision, job.flags, ${controlColumns}
      from page
      join graphile_worker._private_jobs as job on job.id = page.id
      join graphile_worker._private_tasks as task on task.id = job.task_id
      left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
      order by job.id desc`;

/** One page of jobs, newest first. */
export const listJobs = forEachState((state) =>
  statement<JobFilterParams & { limit: number }, ListedJobRow>({
    name: `list_jobs_${state}`,
    values: ({ limit, ...filter }) => [...filterValues(filter), limit],
    text: pageText(state),
  }),
);

interface Among {
  readonly ids: readonly string[];
}

/** The same among jobs whose ids are known. */
export const listJobsAmong = forEachState((state) =>
  statement<JobFilterParams & Among & { limit: number }, ListedJobRow>({
    name: `list_jobs_among_${state}`,
    values: ({ limit, ids, ...filter }) => [...filterValues(filter), limit, ids],
    text: pageText(state, amongIds),
  }),
);

/** How far a walk over so many jobs goes, whether they match or not. */
export interface StretchRow {
  /** The last id that belongs to it; null if there is no job at all. */
  readonly end: string | null;
  readonly jobs: number;
}

/** Jobs that a walk can go along: all, or those of a state that has an index of its own. */
type Walked = "all" | "running" | "dead";

const forEachWalk = <Params>(make: (walked: Walked) => Statement<Params, StretchRow>) => ({
  all: make("all"),
  running: make("running"),
  dead: make("dead"),
});

/** From an id downwards. */
export const stretchDown = forEachWalk((walked) =>
  statement<{ upTo: string | null; limit: number }, StretchRow>({
    name: `stretch_down_${walked}`,
    values: ({ upTo, limit }) => [upTo ?? largestId, limit],
    text: `
    select min(walked.id)::text as end, count(*)::float8 as jobs
    from (
      select job.id from graphile_worker._private_jobs as job
      where job.id <= $1::bigint and ${conditionByState[walked]}
      order by job.id desc
      limit $2::bigint
    ) as walked`,
  }),
);

/** From an id upwards. */
export const stretchUp = forEachWalk((walked) =>
  statement<{ from: string | null; limit: number }, StretchRow>({
    name: `stretch_up_${walked}`,
    values: ({ from, limit }) => [from ?? "0", limit],
    text: `
    select max(walked.id)::text as end, count(*)::float8 as jobs
    from (
      select job.id from graphile_worker._private_jobs as job
      where job.id >= $1::bigint and ${conditionByState[walked]}
      order by job.id
      limit $2::bigint
    ) as walked`,
  }),
);

/** The ids of jobs that match, oldest first. */
export const listJobIds = forEachState((state) =>
  statement<JobFilterParams & { limit: number }, { readonly id: string }>({
    name: `list_job_ids_${state}`,
    values: ({ limit, ...filter }) => [...filterValues(filter), limit],
    text: `
      select job.id ${matching(state)}
      order by job.id
      limit $11::bigint`,
  }),
);

/** The same among jobs whose ids are known. */
export const listJobIdsAmong = forEachState((state) =>
  statement<JobFilterParams & Among & { limit: number }, { readonly id: string }>({
    name: `list_job_ids_among_${state}`,
    values: ({ limit, ids, ...filter }) => [...filterValues(filter), limit, ids],
    text: `
      select job.id ${matching(state, amongIds)}
      order by job.id
      limit $11::bigint`,
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
