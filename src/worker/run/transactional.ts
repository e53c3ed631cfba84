import type { PoolClient } from "pg";
import type { Database } from "../../db/database.ts";
import { isInDoubt } from "../../db/sqlstate.ts";
import { ConfigError } from "../../errors.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction } from "../../job.ts";
import { UnrecoverableError } from "../../job-errors.ts";
import type { TaskHelpers } from "../../task.ts";
import type { Completions, Inside } from "./completions.ts";
import type { JobRun } from "./job-run.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import { runTask } from "./run-task.ts";

/** Adds jobs inside a transaction, on behalf of a job that runs. */
export type AddersIn = (inside: Inside, run: JobRun) => { addJob: AddAnyJobFunction; addJobs: AddAnyJobsFunction };

export interface TransactionalOptions {
  readonly database: Database;
  readonly completions: Completions;
  readonly addersIn: AddersIn;
  /** Jobs share our only connection, which cannot be lent for a transaction. */
  readonly isAlone: boolean;
}

/** Thrown to roll back; the outcome is known. */
class Undone extends Error {}

/**
 * Runs a task in a transaction that is committed together with the completion of its job, and rolled back if the task fails. An error of the
 * commit itself leaves the outcome open: `Completions` asks the server.
 */
export async function runInTransaction(
  run: JobRun,
  helpers: TaskHelpers,
  { database, completions, addersIn, isAlone }: TransactionalOptions,
): Promise<RunOutcome> {
  const { job } = run;
  if (isAlone) {
    const message = `Task '${job.task_identifier}' is transactional, which needs a pool of connections: use run() or runTaskList().`;
    return failed(job, new ConfigError(message));
  }
  let outcome: RunOutcome | undefined;
  const work = async (inside: Database, client: PoolClient): Promise<void> => {
    await completions.bound(run, inside);
    Object.assign(helpers, addersIn(inside, run), { tx: client });
    outcome = await runTask(run, helpers);
    if (outcome.kind !== "succeeded" || run.isAbandoned) throw new Undone();
    if (isOver(client)) throw new UnrecoverableError(endedItself(job.task_identifier));
    await completions.complete(run, inside, outcome.result ?? null);
  };
  try {
    await database.transaction((inside) => inside.withPgClient((client) => work(inside, client)), {
      borrower: job.task_identifier,
    });
    run.completion!.isCommitted = true;
    return outcome!;
  } catch (error) {
    if (error instanceof Undone) return withoutRemaining(outcome!);
    // The commit may have gone through: the task succeeded, and the server knows the rest.
    if (outcome && isInDoubt(error) && run.completion?.transaction !== undefined) return outcome;
    return failed(job, error);
  }
}

/** The task has committed or rolled back by itself, so the completion would commit alone. */
function isOver(client: PoolClient): boolean {
  return (client as { getTransactionStatus?: () => string | null }).getTransactionStatus?.() === "I";
}

function endedItself(task: string): string {
  return (
    `Task '${task}' has ended its transaction, 'helpers.tx', itself. The worker commits it when the task returns, and rolls it back when the task throws. ` +
    "What the task has committed stays, so it is not tried again."
  );
}

/** What the items of a batch did is rolled back with the others, so all of them are left to do. */
function withoutRemaining(outcome: RunOutcome): RunOutcome {
  if (outcome.kind !== "failed" || outcome.remaining === undefined) return outcome;
  const { remaining: _, ...rest } = outcome;
  return rest;
}
