import type { Database } from "../db/database.ts";
import { countOtherTasks, listPayloads, type UncheckedTaskRow } from "../db/statements/payloads.ts";
import { toError } from "../errors.ts";
import type { TaskList } from "../task.ts";
import { $$definition, type AnyTaskDefinition, isTaskDefinition, type PayloadIssue } from "../task-definition.ts";
import { hideTraces } from "../trace-context.ts";

/** A job that would fail as soon as it ran. */
export interface UnfitJob {
  readonly id: string;
  readonly task: string;
  readonly key: string | null;
  readonly issues: readonly PayloadIssue[];
}

export interface PayloadReport {
  /** Jobs that were checked. */
  readonly checked: number;
  /** Jobs whose payload does not fit. */
  readonly unfit: number;
  /** The first of the unfit jobs, oldest first. */
  readonly jobs: readonly UnfitJob[];
  /** Jobs of tasks without a definition here, which cannot be checked. */
  readonly unchecked: readonly UncheckedTaskRow[];
}

export interface CheckPayloadsOptions {
  /** The most unfit jobs to list. Default 100; all are checked and counted. */
  readonly limit?: number | undefined;
  /** Called after each page with the number of jobs checked so far. */
  readonly onProgress?: ((checked: number) => void) | undefined;
}

/** Jobs read at once; their payloads may be large. */
const pageSize = 500;

/** Checks every job that may still run against the definition of its task, and changes nothing. */
export async function checkPayloads(
  db: Database,
  taskList: TaskList,
  { limit = 100, onProgress }: CheckPayloadsOptions = {},
): Promise<PayloadReport> {
  const definitions = new Map(
    Object.entries(taskList).flatMap(([name, task]) => (isTaskDefinition(task) ? [[name, task] as const] : [])),
  );
  const tasks = [...definitions.keys()];
  const jobs: UnfitJob[] = [];
  let checked = 0;
  let unfit = 0;
  for (let after = "0"; tasks.length > 0; ) {
    const page = await db.run(listPayloads, { tasks, after, limit: pageSize });
    for (const row of page) {
      const issues = await issuesOf(definitions.get(row.task_identifier)!, row.payload);
      checked++;
      if (issues.length === 0) continue;
      unfit++;
      if (jobs.length < limit) jobs.push({ id: row.id, task: row.task_identifier, key: row.key, issues });
    }
    onProgress?.(checked);
    if (page.length < pageSize) break;
    after = page.at(-1)!.id;
  }
  return { checked, unfit, jobs, unchecked: await db.run(countOtherTasks, { tasks }) };
}

/** An upgrade that throws is a reason too. */
async function issuesOf(definition: AnyTaskDefinition, payload: unknown): Promise<readonly PayloadIssue[]> {
  try {
    return await definition[$$definition].check(hideTraces({ payload }).payload);
  } catch (thrown) {
    return [{ path: "", message: toError(thrown).message }];
  }
}
