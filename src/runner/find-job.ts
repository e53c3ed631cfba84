import type { ShownJob } from "../admin/list-jobs.ts";
import type { Database } from "../db/database.ts";
import { undefinedFunction } from "../db/sqlstate.ts";
import { readJobControl } from "../db/statements/control.ts";
import { codeOf } from "../errors.ts";
import type { HistoryOutcome, HistoryReader, JobHistoryEntry } from "../history/history-reader.ts";
import { checkJobId, type JobId } from "../job-checks.ts";

/** A job that is waiting, running or permanently failed, and how its attempts so far ended. */
export interface PresentJob extends ShownJob {
  readonly history: readonly JobHistoryEntry[];
}

/** A job that is gone, as far as history or the record of a cancel tells. */
export interface FinishedJob {
  readonly id: string;
  readonly state: "finished";
  readonly task_identifier: string | null;
  readonly queue_name: string | null;
  readonly key: string | null;
  /** How it ended. */
  readonly outcome: HistoryOutcome;
  readonly finished_at: Date;
  /** With `keepResult`. */
  readonly result: unknown;
  /** With `history: "full"`. */
  readonly payload: unknown;
  readonly history: readonly JobHistoryEntry[];
}

export type FoundJob = PresentJob | FinishedJob;

/** Finds a job wherever it is. */
export function makeFindJob(
  database: Pick<Database, "run">,
  getJob: (id: JobId) => Promise<ShownJob | null>,
  reader: HistoryReader,
): (id: JobId) => Promise<FoundJob | null> {
  return async (id) => {
    const job = await getJob(id);
    // A schema that was not brought up to date has no history.
    const history = await reader.getJobHistory(id).catch((error: unknown) => {
      if (codeOf(error) === undefinedFunction) return [];
      throw error;
    });
    if (job) return { ...job, history };
    const last = history.at(-1);
    if (!last) return findCancelled(database, checkJobId(id));
    const { task_identifier, queue_name, key, outcome, settled_at: finished_at, result, payload } = last;
    return {
      id: last.id,
      state: "finished",
      task_identifier,
      queue_name,
      key,
      outcome,
      finished_at,
      result,
      payload,
      history,
    };
  };
}

async function findCancelled(database: Pick<Database, "run">, id: string): Promise<FinishedJob | null> {
  const [control] = await database.run(readJobControl, { id }).catch(() => []);
  if (!control?.cancelled_at || control.cancel_outcome !== "cancelled") return null;
  return {
    id,
    state: "finished",
    task_identifier: control.cancelled_task,
    queue_name: null,
    key: null,
    outcome: "cancelled",
    finished_at: control.cancelled_at,
    result: null,
    payload: null,
    history: [],
  };
}
