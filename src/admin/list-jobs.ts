import type { Database } from "../db/database.ts";
import {
  countJobs as countJobsStatement,
  type JobFilterParams,
  type ListedJobRow,
  listJobIds,
  listJobIdsAmong,
  listJobsAmong,
  listJobs as listJobsStatement,
  type ShownJobRow,
  showJob,
} from "../db/statements/list-jobs.ts";
import { JobSpecError } from "../errors.ts";
import { checkInteger, checkJobId, type JobId } from "../job-checks.ts";
import { findPause, type Pause } from "../pause.ts";
import { type ReportedProgress, toReported } from "../progress.ts";
import { checkState, type JobFilter, type JobState } from "./job-filter.ts";
import { readPauses } from "./read-pauses.ts";
import { planScan, type ScanPlan } from "./scan-plan.ts";

interface MaybePaused {
  /** What keeps it from starting, if it is neither running nor failed. */
  readonly pause: Pause | null;
}
interface WithProgress {
  /** How far it is, if it has reported that; also from an earlier attempt. */
  readonly progress: ReportedProgress | null;
}
export interface ListedJob extends Omit<ListedJobRow, "progress">, WithProgress, MaybePaused {}
export interface ShownJob extends Omit<ShownJobRow, "progress">, WithProgress, MaybePaused {}

export interface PageOptions {
  /** Jobs per page, 1 to 1000. Default 50. */
  readonly limit?: number | undefined;
  /** The `next` of the previous page: the id of its last job. */
  readonly after?: JobId | null | undefined;
  /** Look at this many jobs at most, however many match: the page may be short, or empty, and still have a `next`. */
  readonly lookAt?: number | undefined;
}

export interface JobPage {
  /** Newest first. */
  readonly jobs: readonly ListedJob[];
  /** Pass it as `after` to get the next page; null on the last page. */
  readonly next: string | null;
}

export interface ScanOptions {
  /** The `next` of the scan before. */
  readonly after?: JobId | null | undefined;
  /** Jobs to look at, from 1 to 1,000,000; 10,000 if left out. */
  readonly lookAt?: number | undefined;
}

export interface JobScan {
  /** The ids of those that match, oldest first. */
  readonly ids: readonly string[];
  /** Pass it as `after` to go on; null at the end. */
  readonly next: string | null;
}

/** One page of the jobs that match, newest first, at a cost that does not grow with the number of the page. */
export async function listJobs(
  db: Database,
  filter: JobFilter = {},
  { limit = 50, after, lookAt }: PageOptions = {},
): Promise<JobPage> {
  const size = checkInteger("limit", limit, 1, 1000);
  const params = paramsOf(filter);
  const upTo = least(params.upTo, after === undefined || after === null ? null : BigInt(checkJobId(after)) - 1n);
  const look = lookAt === undefined ? everything : await planScan(db, filter, { up: null, down: upTo }, lookAt);
  const page = { ...params, upTo, from: look.end ?? params.from, limit: size + 1 };
  const rows = look.among
    ? await db.run(listJobsAmong[stateOf(filter)], { ...page, ids: look.among })
    : await db.run(listJobsStatement[stateOf(filter)], page);
  const pauses = await readPauses(db);
  const jobs = rows.slice(0, size).map((row) => toListed(row, pauses));
  return { jobs, next: rows.length > size ? jobs.at(-1)!.id : look.end };
}

const everything: ScanPlan = { end: null, among: null };

/** Looks at a bounded number of jobs from the oldest on, and says which of them match. */
export async function scanJobs(
  db: Database,
  filter: JobFilter,
  { after, lookAt = 10_000 }: ScanOptions = {},
): Promise<JobScan> {
  const params = paramsOf(filter);
  const from = after === undefined || after === null ? "0" : String(BigInt(checkJobId(after)) + 1n);
  const { end, among } = await planScan(db, filter, { up: from, down: null }, lookAt);
  const upTo = least(params.upTo, end === null ? null : BigInt(end));
  const page = { ...params, from, upTo, limit: lookAt };
  const rows = among
    ? await db.run(listJobIdsAmong[stateOf(filter)], { ...page, ids: among, limit: among.length })
    : await db.run(listJobIds[stateOf(filter)], page);
  const isOver = end === null || (params.upTo !== null && BigInt(end) >= BigInt(params.upTo));
  return { ids: rows.map(({ id }) => id), next: isOver ? null : end };
}

function least(a: string | null, b: bigint | null): string | null {
  if (b === null) return a;
  return a === null || BigInt(a) > b ? String(b) : a;
}

/** One job with its payload, or null if there is none with this id. */
export async function getJob(db: Database, id: JobId): Promise<ShownJob | null> {
  const [job] = await db.run(showJob, { id: checkJobId(id) });
  return job ? toListed(job, await readPauses(db)) : null;
}

/** How many jobs match a filter. Exact, so it reads them all: for questions before an action, not for every screen. */
export async function countJobs(db: Database, filter: JobFilter = {}): Promise<number> {
  const [row] = await db.run(countJobsStatement[stateOf(filter)], paramsOf(filter));
  return row?.count ?? 0;
}

/** The ids of all jobs that match, oldest first, in batches. Jobs that start to match behind the current batch are included. */
export async function* eachJobId(
  db: Pick<Database, "run">,
  filter: JobFilter,
  batchSize: number,
): AsyncGenerator<string[]> {
  for (let after = "0"; ; ) {
    const from = String(BigInt(after) + 1n);
    const rows = await db.run(listJobIds[stateOf(filter)], { ...paramsOf(filter), from, limit: batchSize });
    const last = rows.at(-1);
    if (!last) return;
    yield rows.map(({ id }) => id);
    after = last.id;
  }
}

function toListed<Row extends ListedJobRow>(
  row: Row,
  pauses: readonly Pause[],
): Omit<Row, "progress"> & WithProgress & MaybePaused {
  return { ...row, progress: toReported(row.progress), pause: pauseOf(row, pauses) };
}

function pauseOf(
  { state, task_identifier: task, queue_name: queue }: ListedJobRow,
  pauses: readonly Pause[],
): Pause | null {
  return state === "waiting" || state === "scheduled" ? findPause(pauses, { task, queue }) : null;
}

function stateOf({ state }: JobFilter): JobState | "all" {
  return state === undefined ? "all" : checkState(state);
}

function paramsOf({ task, queue, key, since, until, search, error, upTo, redact }: JobFilter): JobFilterParams {
  for (const [name, date] of Object.entries({ since, until })) {
    if (date && Number.isNaN(date.getTime())) throw new JobSpecError(`'${name}' must be a valid date.`);
  }
  return {
    task: task ?? null,
    queue: queue ?? null,
    key: key ?? null,
    since: since ?? null,
    search: search ?? null,
    before: until ?? null,
    error: error ?? null,
    from: null,
    upTo: upTo === undefined ? null : checkJobId(upTo),
    redact: redact && redact.length > 0 ? redact : null,
  };
}
