import type { Database } from "../db/database.ts";
import { takeSweepTurn } from "../db/statements/sweep-workers.ts";
import { watchLines } from "../db/statements/worker-lines.ts";
import { toError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { describeSweep } from "./describe-sweep.ts";
import type { RecoverySettings } from "./recovery-settings.ts";
import { type SweepHooks, sweep } from "./sweep.ts";

export interface SweeperOptions {
  readonly database: Database;
  readonly settings: RecoverySettings;
  readonly logger: Logger;
  readonly sweeperId: () => string;
  readonly hooks: SweepHooks;
}

/** A fleet that starts together should not sweep together. */
const firstSweepWithinMs = 1_000;
/** When this much later than planned, the database was away, or we were. */
const missedMs = 5_000;

/** Looks for dead workers: often for those whose line broke, which is cheap, and every `sweepInterval` for all. */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #watchMs: number;
  #sweepAt: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #wellSince = 0;
  #isInTrouble = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    const { crashGrace, sweepInterval } = options.settings;
    this.#watchMs = Math.max(100, Math.min(2_500, crashGrace / 2));
    this.#sweepAt = Date.now() + Math.random() * Math.min(firstSweepWithinMs, sweepInterval);
  }

  /** Sweeps until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      let restMs = this.#watchMs;
      try {
        restMs = Math.min(restMs, await this.#look());
        this.#isInTrouble = false;
      } catch (error) {
        this.#report(error);
      }
      await sleep(Math.max(10, Math.min(restMs, this.#sweepAt - Date.now())), signal);
    }
  }

  /** Gives when to look again. */
  async #look(): Promise<number> {
    const { database, settings } = this.#options;
    const [row] = await database.run(watchLines, { graceMs: settings.crashGrace });
    this.#judgeSilence();
    const deadInMs = row?.dead_in_ms ?? Number.POSITIVE_INFINITY;
    const isFull = Date.now() >= this.#sweepAt && (await this.#isOurTurn());
    if (isFull || deadInMs <= 0) await this.#sweep(isFull);
    return deadInMs > 0 ? deadInMs : this.#watchMs;
  }

  /** Silence means nothing while nobody could be heard: after an outage of the database everybody gets time to beat again. */
  #judgeSilence(): void {
    const now = Date.now();
    if (now - this.#lookedAt > this.#watchMs + missedMs) this.#wellSince = now;
    this.#lookedAt = now;
    this.#sweepAt = Math.max(this.#sweepAt, this.#wellSince + 2 * this.#options.settings.heartbeatInterval);
  }

  /** Of many processes one does the full sweep, and the others leave it at that. */
  async #isOurTurn(): Promise<boolean> {
    const { database, settings } = this.#options;
    this.#sweepAt = Date.now() + settings.sweepInterval * (0.9 + Math.random() * 0.2);
    return (await database.run(takeSweepTurn, { withinMs: settings.sweepInterval / 2 })).length > 0;
  }

  async #sweep(withOrphans: boolean): Promise<void> {
    const { database, settings, hooks, logger, sweeperId } = this.#options;
    const result = await sweep(database, { settings, withOrphans, dryRun: false, hooks, sweeperId: sweeperId() });
    for (const sentence of describeSweep(result)) logger.warn(sentence);
  }

  #report(error: unknown): void {
    if (!this.#isInTrouble) {
      const { message } = toError(error);
      this.#options.logger.error(`Could not look for dead workers; trying again: ${message}`, { error });
    }
    this.#isInTrouble = true;
  }
}
