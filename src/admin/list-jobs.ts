import type { Database } from "../db/database.ts";
import {
  countJobs as countJobsStatement,
  type JobFilterParams,
  type ListedJobRow,
  listJobIds,
  listJobs as listJobsStatement,
} from "../db/statements/list-jobs.ts";
import type { ShownJobRow } from "../db/statements/show-job.ts";
import { showJob } from "../db/statements/show-job.ts";
import { JobSpecError } from "../errors.ts";
import { checkState, type JobFilter, type JobState } from "./job-filter.ts";

export type ListedJob = ListedJobRow;
export type ShownJob = ShownJobRow;

export interface ListJobsOptions extends JobFilter {
  /** Only jobs older than this one: the `next` of the page before. */
  readonly before?: string | undefined;
  /** Jobs on a page; from 1 to 1000, 50 if left out. */
  readonly limit?: number | undefined;
}

export interface JobPage {
  /** Newest first. */
  readonly jobs: readonly ListedJob[];
  /** Give this as `before` for the next page; null on the last one. */
  readonly next: string | null;
}

/** One page of the jobs that match, newest first, at a cost that does not grow with the number of the page. */
export async function listJobs(
  db: Database,
  { before, limit = 50, ...filter }: ListJobsOptions = {},
): Promise<JobPage> {
  if (!Number.isInteger(limit) || limit < 1 || limit > 1000) {
    throw new JobSpecError(`'limit' must be a whole number from 1 to 1000, got ${limit}.`);
  }
  const params = { ...paramsOf(filter), before: before === undefined ? null : checkJobId(before), limit: limit + 1 };
  const rows = await db.run(listJobsStatement[stateOf(filter)], params);
  const jobs = rows.slice(0, limit);
  return { jobs, next: rows.length > limit ? (jobs.at(-1)?.id ?? null) : null };
}

/** One job with its payload, or null if there is none with this id. */
export async function getJob(db: Database, id: string): Promise<ShownJob | null> {
  const [job] = await db.run(showJob, { id: checkJobId(id) });
  return job ?? null;
}

/** How many jobs match a filter. Exact, and so it reads them all: for questions before an action, not for every screen. */
export async function countJobs(db: Database, filter: JobFilter): Promise<number> {
  const [row] = await db.run(countJobsStatement[stateOf(filter)], paramsOf(filter));
  return row?.count ?? 0;
}

/** The ids of all jobs that match, oldest first, a thousand at a time. Jobs that match only later are not missed. */
export async function* eachJobId(db: Database, filter: JobFilter, batch = 1000): AsyncGenerator<readonly string[]> {
  for (let after = "0"; ; ) {
    const rows = await db.run(listJobIds[stateOf(filter)], { ...paramsOf(filter), after, limit: batch });
    const last = rows.at(-1);
    if (!last) return;
    yield rows.map(({ id }) => id);
    after = last.id;
  }
}

export function checkJobId(id: string): string {
  if (!/^\d{1,19}$/.test(id)) throw new JobSpecError(`'${id}' is not the id of a job; ids are whole numbers.`);
  return id;
}

function stateOf({ state }: JobFilter): JobState | "all" {
  return state === undefined ? "all" : checkState(state);
}

function paramsOf({ task, queue, key, since, search }: JobFilter): JobFilterParams {
  if (since && Number.isNaN(since.getTime())) throw new JobSpecError("'since' must be a valid date.");
  return {
    task: task ?? null,
    queue: queue ?? null,
    key: key ?? null,
    since: since ?? null,
    search: search ?? null,
  };
}
