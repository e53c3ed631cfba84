import type { Pool } from "pg";
import { type Database, poolDatabase } from "../db/database.ts";
import { isUnreachable } from "../db/sqlstate.ts";
import { type CountedTimes, recordTimes } from "../db/statements/metrics.ts";
import { errorTitle } from "../error-text.ts";
import type { MeteredPool } from "../hooks/meter.ts";
import type { Service } from "../util/service.ts";
import { sleep } from "../util/sleep.ts";
import type { SeriesByTask, TaskSeries } from "./task-series.ts";

/** What of a task is in the database already. */
type Recorded = Omit<CountedTimes, "task">;

const restMs = 10_000;

/** Adds what was counted to the database every few seconds, in one statement, and nothing per job. */
export class TimesRecorder implements Service {
  readonly #tasks: SeriesByTask;
  readonly #logger: MeteredPool["logger"];
  readonly #database: Database;
  readonly #recorded = new Map<string, Recorded>();
  readonly #stop = new AbortController();
  #loop: Promise<void> = Promise.resolve();
  #hasFailed = false;

  constructor({ pgPool, schema, preparedStatements, logger }: MeteredPool & { pgPool: Pool }, tasks: SeriesByTask) {
    this.#tasks = tasks;
    this.#logger = logger;
    this.#database = poolDatabase(pgPool, { schema, preparedStatements });
  }

  start(): void {
    this.#loop = this.#run();
  }

  /** Records what is left. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(restMs * (0.75 + Math.random() / 2), signal);
      await this.#record();
    }
  }

  async #record(): Promise<void> {
    const now = this.#tasks.entries().map(([task, series]) => ({ task, ...countsOf(series) }));
    const counted = now.map((counts) => since(counts, this.#recorded.get(counts.task))).filter(hasAny);
    if (counted.length === 0) return;
    try {
      await this.#database.run(recordTimes, { counted });
      for (const counts of now) this.#recorded.set(counts.task, counts);
      this.#hasFailed = false;
    } catch (error) {
      // What could not be written goes out with the next.
      const isKnown = this.#hasFailed || isUnreachable(error);
      this.#logger[isKnown ? "debug" : "error"](`Times of jobs could not be recorded: ${errorTitle(error)}`, { error });
      this.#hasFailed = true;
    }
  }
}

function countsOf({ wait, run, finished }: TaskSeries): Recorded {
  const { succeeded, failed, permanentlyFailed } = finished;
  return {
    waits: [...wait.bins],
    runs: [...run.bins],
    succeeded,
    failed: failed + permanentlyFailed,
    permanently_failed: permanentlyFailed,
  };
}

function since(now: CountedTimes, before: Recorded | undefined): CountedTimes {
  if (!before) return now;
  return {
    task: now.task,
    waits: now.waits.map((count, bin) => count - before.waits[bin]!),
    runs: now.runs.map((count, bin) => count - before.runs[bin]!),
    succeeded: now.succeeded - before.succeeded,
    failed: now.failed - before.failed,
    permanently_failed: now.permanently_failed - before.permanently_failed,
  };
}

function hasAny({ waits, runs, succeeded, failed }: CountedTimes): boolean {
  return succeeded + failed > 0 || waits.some(Boolean) || runs.some(Boolean);
}
