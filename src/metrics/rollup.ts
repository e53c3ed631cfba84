import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { poolDatabase } from "../db/database.ts";
import { describeHolder } from "../db/describe-holder.ts";
import { isUnreachable } from "../db/sqlstate.ts";
import { type RollupData, type RollupRow, readRollup } from "../db/statements/metrics.ts";
import { errorTitle } from "../error-text.ts";
import type { MeteredPool } from "../hooks/meter.ts";
import type { Service } from "../util/service.ts";
import { sleep } from "../util/sleep.ts";
import { monotonicMs } from "../util/timers.ts";

export interface RollupOptions {
  readonly maxTasks: number;
  /** Seconds for which vacuum may be held back before that is logged. */
  readonly vacuumWarningSeconds: number;
}

const maxAgeMs = 5_000;
/** How soon to ask again while another worker collects figures for the first time. */
const firstRestMs = 1_000;
const cap = 10_000;
/** 8 MB: some 30,000 jobs. */
const maxPages = 1_024;
/** Older figures say nothing about now. */
const staleMs = 5 * 60_000;

/**
 * Figures about the whole table, which all processes share: one of them collects, the others read, and the more there are the less often
 * each reads. A scrape asks the database nothing.
 */
export class Rollup implements Service {
  readonly #pool: MeteredPool & { readonly pgPool: Pool };
  readonly #options: RollupOptions;
  readonly #stop = new AbortController();
  #row: RollupRow | undefined;
  #readAt = 0;
  #hasFailed = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(pool: MeteredPool & { readonly pgPool: Pool }, options: RollupOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  get schema(): string {
    return this.#pool.schema;
  }

  /** The figures and their age; undefined if there are none that say something about now. */
  get current(): { readonly data: RollupData; readonly ageMs: number } | undefined {
    if (!this.#row || this.#row.age_ms === null) return undefined;
    const ageMs = this.#row.age_ms + monotonicMs() - this.#readAt;
    return ageMs < staleMs ? { data: this.#row.data, ageMs } : undefined;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { pgPool, schema, preparedStatements, logger } = this.#pool;
    const { vacuumWarningSeconds: warnAfterSeconds, maxTasks } = this.#options;
    const database = poolDatabase(pgPool, { schema, preparedStatements });
    const params = { reader: randomUUID(), maxAgeMs, warnAfterSeconds, cap, maxTasks, maxPages };
    // A fleet that starts together should not ask together.
    await sleep(Math.random() * 1_000, this.#stop.signal);
    while (!this.#stop.signal.aborted) {
      let restMs = maxAgeMs;
      try {
        const [row] = await database.run(readRollup, params);
        restMs = row!.age_ms === null ? firstRestMs : row!.read_in_ms * (0.9 + Math.random() * 0.2);
        this.#row = row;
        this.#readAt = monotonicMs();
        this.#hasFailed = false;
        for (const holder of row!.to_report)
          logger.warn(`Vacuum is held back, so workers become slower: ${describeHolder(holder)}.`, { holder });
      } catch (error) {
        const isKnown = this.#hasFailed || isUnreachable(error);
        logger[isKnown ? "debug" : "error"](`Figures about the table could not be read: ${errorTitle(error)}`, {
          error,
        });
        this.#hasFailed = true;
      }
      await sleep(restMs, this.#stop.signal);
    }
  }
}
