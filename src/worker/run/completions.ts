import type { Database } from "../../db/database.ts";
import {
  type Attempt,
  boundTransaction,
  type CompletionRow,
  completeJobIn,
  jobLostMark,
  jobLostState,
  lookAtCompletions,
} from "../../db/statements/complete-in.ts";
import { ConfigError, codeOf } from "../../errors.ts";
import { JobLostError } from "../../job-errors.ts";
import type { KeepRules } from "../../kept-history.ts";
import { backoffMs } from "../../util/backoff.ts";
import { Coalescer } from "../../util/coalescer.ts";
import { sleep } from "../../util/sleep.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { JobRun } from "./job-run.ts";

/** How long a transaction may stay open, if its task does not say. */
const defaultLimitMs = 5 * 60_000;
/** Asked for where only the job is of interest. */
const noTransaction = "0";
/** How often to look at a transaction that is still open. */
const openBackoff = { minMs: 5, maxMs: 1_000, factor: 1.5 };

/** What an attempt that was completed in a transaction knows of it. */
export interface Completion {
  /** The transaction's id, once the server has said it. */
  transaction: string | undefined;
  /** The commit was confirmed, so there is nothing to ask. */
  isCommitted: boolean;
  /** Statements on their way; a task may return without waiting for them. */
  underWay: Promise<unknown>;
}

/** Something that runs statements inside a transaction. */
export type Inside = Pick<Database, "run">;

export interface CompletionsOptions {
  readonly database: Database;
  readonly keepRules: KeepRules;
  /** Asks until there is an answer, or until it must give up. */
  readonly persist: <T>(ask: () => Promise<T>) => Promise<T>;
}

/**
 * Completes jobs inside transactions of their tasks, and finds out what became of those. What the server says counts, never what the task
 * did: it may commit and throw, or return without a commit.
 */
export class Completions {
  readonly #options: CompletionsOptions;
  readonly #looks: Coalescer<Attempt & { transaction: string }, CompletionRow>;

  constructor(options: CompletionsOptions) {
    this.#options = options;
    this.#looks = new Coalescer(
      (asked) => options.persist(() => options.database.run(lookAtCompletions, asked)),
      1_000,
    );
  }

  /** Completes the job of this run in the transaction; throws `JobLostError` if the job is no longer the run's. */
  async complete(run: JobRun, inside: Inside, result: string | null): Promise<void> {
    const { job, options } = run;
    const { keepRules } = this.#options;
    const rule = keepRules.of(job.task_identifier);
    const opening = rule && keepRules.opening();
    if (opening) await opening;
    const params = {
      limitMs: limitOf(run),
      runMs: Math.round(monotonicMs() - run.startedAt),
      result: options?.keepResult ? (result ?? "null") : null,
      keptAs: rule?.keptAs ?? null,
      keptDays: rule?.completedDays ?? 0,
      resultDays: rule?.resultDays ?? 0,
      redact: keepRules.redact,
    };
    requireRunning(run);
    if (run.isAbandoned || run.isLost) {
      // A task may catch the error and go on, so the server has to abort the transaction.
      await inside
        .run(completeJobIn, { ...params, ...attemptOf(run), poolId: null, earlier: null })
        .catch(() => undefined);
      throw lostError(run);
    }
    run.completion ??= { transaction: undefined, isCommitted: false, underWay: Promise.resolve() };
    const { completion } = run;
    // A call that is made while another is under way has to know in which transaction that one completed the job.
    const written = completion.underWay.then(async () => {
      requireRunning(run);
      const earlier = completion.transaction ?? null;
      const [row] = await inside.run(completeJobIn, { ...params, ...attemptOf(run), earlier });
      completion.transaction = row!.transaction;
    });
    completion.underWay = written.catch(() => undefined);
    try {
      await written;
    } catch (error) {
      if (!isLost(error)) throw error;
      // Its row would stay locked if nothing were written of it.
      if (await this.#isOurs(run)) throw otherDatabase(run, error);
      run.isLost = true;
      throw lostError(run, error);
    }
  }

  /** Whether our database still has the job as this run's. */
  async #isOurs(run: JobRun): Promise<boolean> {
    const asked = [{ ...attemptOf(run), transaction: noTransaction }];
    const [row] = await this.#options.database.run(lookAtCompletions, asked).catch(() => []);
    return row?.is_ours === true;
  }

  /** Limits a transaction that was just begun for this run. */
  async bound(run: JobRun, inside: Inside): Promise<void> {
    await inside.run(boundTransaction, { limitMs: limitOf(run) });
  }

  /** Whether the completion of this run was committed. Waits for the end of a transaction that is still open. */
  async isCommitted(run: JobRun): Promise<boolean> {
    const { transaction, isCommitted } = run.completion!;
    if (isCommitted || transaction === undefined) return isCommitted;
    let sawCommitted = false;
    for (let attempt = 0; ; attempt++) {
      const { status, is_ours: isOurs } = await this.#looks.add({ ...attemptOf(run), transaction });
      if (status === "aborted") return false;
      if (status === "committed") {
        if (!isOurs) return true;
        // Rolled back to a savepoint; or committed after the row was read, which the next look tells apart.
        if (sawCommitted) return false;
        sawCommitted = true;
        continue;
      }
      await sleep(backoffMs(openBackoff, attempt));
    }
  }
}

function attemptOf({ job }: JobRun): Attempt {
  return { jobId: job.id, poolId: job.locked_by!, attempt: job.attempts };
}

/** After the task has returned, its connection may be used by another task. */
function requireRunning(run: JobRun): void {
  if (run.isOver) throw lostError(run);
}

function limitOf({ options }: JobRun): number {
  return Math.ceil(options?.transactionTimeout ?? defaultLimitMs);
}

function lostError({ job }: JobRun, cause?: unknown): JobLostError {
  return new JobLostError(
    `Job ${job.id} (attempt ${job.attempts}) no longer belongs to this run: another worker claimed it, or it has ended. Its transaction must roll back.`,
    ...(cause === undefined ? [] : [{ cause }]),
  );
}

function otherDatabase({ job }: JobRun, cause: unknown): ConfigError {
  return new ConfigError(
    `'completeIn' was given a transaction that does not have job ${job.id}: it belongs to another database, or has deleted the job itself.`,
    { cause },
  );
}

/** Libraries wrap errors, each in its own way; the mark is in one of the messages. */
function isLost(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > 4) return false;
  if (codeOf(error) === jobLostState) return true;
  const { message, cause, meta, driverError, originalError } = error as Record<string, unknown>;
  if (typeof message === "string" && message.includes(jobLostMark)) return true;
  return [cause, meta, driverError, originalError].some((inner) => isLost(inner, depth + 1));
}
