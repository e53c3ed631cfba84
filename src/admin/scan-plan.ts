import type { Database } from "../db/database.ts";
import { stretchDown, stretchUp } from "../db/statements/list-jobs.ts";
import { findFailedJobs, findFewJobs } from "../db/statements/state-indexes.ts";
import { checkInteger } from "../job-checks.ts";
import { checkState, type JobFilter } from "./job-filter.ts";
import { canFindStates } from "./state-indexes.ts";

/** What a search over a bounded number of jobs goes through. */
export interface ScanPlan {
  /** The id at which it ends; null if it reaches the last job. */
  readonly end: string | null;
  /** Jobs that are the only ones which can match; null if that is not known. */
  readonly among: readonly string[] | null;
}

/** Where it begins: from an id upwards, or else from one downwards (null: from the last job). */
interface Start {
  readonly up: string | null;
  readonly down: string | null;
}

/** So many jobs are read at once rather than searched for among all the others. */
const few = 1_000;

/**
 * Decides how to look at `lookAt` jobs at most. The jobs of a task, a queue or an error that has few are found by index, as are those that run or are dead where
 * there are indexes of them; otherwise it is a stretch of ids, whatever jobs have them.
 */
export async function planScan(
  db: Database,
  filter: JobFilter,
  { up, down }: Start,
  lookAt: number,
): Promise<ScanPlan> {
  const limit = checkInteger("lookAt", lookAt, 1, 1_000_000);
  const state = filter.state === undefined ? "all" : checkState(filter.state);
  const isAvailable = state === "waiting" || state === "scheduled";
  const isIndexed = !isAvailable && (await canFindStates(db));
  const among = await findFew(db, filter, {
    isAvailable,
    isAnyFound: state === "all" && isIndexed,
    most: Math.min(few, limit),
  });
  if (among) return { end: null, among };
  const walked = isIndexed && (state === "running" || state === "dead") ? state : "all";
  const [stretch] =
    up === null
      ? await db.run(stretchDown[walked], { upTo: down, limit })
      : await db.run(stretchUp[walked], { from: up, limit });
  return { end: stretch && stretch.jobs >= limit ? stretch.end : null, among: null };
}

async function findFew(
  db: Database,
  { task, queue, error }: JobFilter,
  {
    isAvailable,
    isAnyFound,
    most,
  }: { readonly isAvailable: boolean; readonly isAnyFound: boolean; readonly most: number },
): Promise<readonly string[] | null> {
  if (error !== undefined) {
    const [failed] = await db.run(findFailedJobs, { fingerprint: error, most });
    if (failed?.ids) return failed.ids;
  }
  if ((task === undefined && queue === undefined) || !(isAvailable || isAnyFound)) return null;
  const which = { task: task ?? null, queue: queue ?? null, isAnyState: isAnyFound, most };
  const [found] = await db.run(findFewJobs, which);
  return found?.ids ?? null;
}
