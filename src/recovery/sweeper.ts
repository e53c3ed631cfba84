import type { RecoverySettings } from "../config/recovery-options.ts";
import type { Database } from "../db/database.ts";
import { type OutageLog, troubleOf } from "../db/outage-log.ts";
import { watchLines, watchLinesAnnouncing } from "../db/statements/heartbeat.ts";
import { takeSweepTurn } from "../db/statements/sweep.ts";
import type { KeepRules } from "../kept-history.ts";
import type { Logger } from "../logger.ts";
import { Pulse } from "../util/pulse.ts";
import { staggeredShare } from "../util/stagger.ts";
import { monotonicMs } from "../util/timers.ts";
import { describeSweep } from "./describe-sweep.ts";
import type { Witnessed } from "./loop-board.ts";
import { sweep } from "./sweep.ts";
import type { SweepHooks } from "./sweep-options.ts";
import { graceMs, judgingMs, maxGapMs } from "./witness.ts";

export interface SweeperOptions {
  readonly database: Database;
  readonly settings: RecoverySettings;
  readonly logger: Logger;
  readonly outages: OutageLog;
  readonly sweeperId: () => string;
  readonly hooks: SweepHooks;
  readonly keepRules: KeepRules;
  /** What the worker's own heartbeats have witnessed; undefined if the last of them is overdue. */
  readonly witnessed: () => Witnessed | undefined;
  /** Called with the milliseconds until a parked job may be adopted; Infinity if none is parked. */
  readonly onParked: (inMs: number) => void;
}

/** How soon to sweep again for what another transaction held. */
const leftoverMs = 1_000;
/** Two sweeps are further apart than this, and two reports of one are closer. */
const sameSweepMs = 200;
/** A fleet that starts together should not sweep together. */
const firstSweepWithinMs = 1_000;

/** For how long the last word of another process says that there are others. */
const othersMs = 60_000;

/**
 * Looks for dead workers: often for those whose line broke, which is cheap, and every `sweepInterval` for all. As long as nothing is amiss,
 * another process's look stands for ours.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #watchMs: number;
  readonly #pulse = new Pulse();
  #sweepAt: number;
  #lookAt = 0;
  #othersUntil = 0;
  #mayJudge = false;
  /** When one of the others last began to sweep for all, as far as we have heard. */
  #sweptAt = Number.NEGATIVE_INFINITY;
  #hasLeftovers = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    const { crashGrace, sweepInterval } = options.settings;
    this.#watchMs = Math.max(100, Math.min(2_500, crashGrace / 2));
    this.#sweepAt = monotonicMs() + Math.random() * Math.min(firstSweepWithinMs, sweepInterval);
  }

  /** Sweeps until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const inMs = this.#lookAt - monotonicMs();
      if (inMs > 0) {
        await this.#pulse.wait(inMs, signal);
        continue;
      }
      let restMs = this.#watchMs;
      try {
        restMs = Math.min(restMs, await this.#look());
        this.#options.outages.well(this);
      } catch (error) {
        this.#options.outages.trouble(this, troubleOf(error), error);
      }
      const now = monotonicMs();
      this.#lookAt = now + Math.max(10, Math.min(restMs, this.#sweepAt - now));
    }
  }

  /** There are other processes. */
  noticeOthers(): void {
    this.#othersUntil = monotonicMs() + othersMs;
  }

  /** Another process has looked; the last full sweep began so many milliseconds ago. */
  hear(isQuiet: boolean, sweptMs: number): void {
    this.noticeOthers();
    if (!isQuiet || this.#hasLeftovers) return;
    const now = monotonicMs();
    const { sweepInterval } = this.#options.settings;
    // All hear of the same sweep with every look.
    if (sweptMs < sweepInterval / 2 && now - sweptMs > this.#sweptAt + sameSweepMs) {
      this.#sweptAt = now - sweptMs;
      this.#sweepAt = Math.max(this.#sweepAt, this.#sweptAt + sweepInterval * staggeredShare());
    }
    const lookAt = Math.max(this.#lookAt, now + this.#watchMs * staggeredShare());
    this.#lookAt = this.#mayJudge ? Math.min(lookAt, this.#sweepAt) : lookAt;
  }

  /** Gives when to look again. */
  async #look(): Promise<number> {
    const { database, settings, sweeperId } = this.#options;
    const watch = { graceMs: this.#graceMs };
    const [row] =
      monotonicMs() < this.#othersUntil
        ? await database.run(watchLinesAnnouncing, { ...watch, by: sweeperId(), schema: database.schema })
        : await database.run(watchLines, watch);
    const deadInMs = row?.dead_in_ms ?? Number.POSITIVE_INFINITY;
    const mayJudge = row !== undefined && this.#witnessedMs(row.now_ms) >= judgingMs(settings);
    this.#mayJudge = mayJudge;
    if (!mayJudge) this.#sweepAt = Math.max(this.#sweepAt, monotonicMs() + this.#watchMs);
    const isFull = mayJudge && monotonicMs() >= this.#sweepAt && (await this.#isOurTurn());
    const hasSwept = mayJudge && (isFull || deadInMs <= 0) && (await this.#sweep(isFull));
    this.#options.onParked(row?.parked_in_ms ?? Number.POSITIVE_INFINITY);
    // What was just parked may be for us.
    if (hasSwept) return 0;
    const parkedInMs = row?.parked_in_ms ?? 0;
    return Math.min(deadInMs > 0 ? deadInMs : this.#watchMs, parkedInMs > 0 ? parkedInMs : this.#watchMs);
  }

  /** Nothing counts that happened while our own heartbeats did not arrive: that was no fault of the others. */
  #witnessedMs(nowMs: number): number {
    const witnessed = this.#options.witnessed();
    if (!witnessed || Math.abs(nowMs - witnessed.atMs) > maxGapMs(this.#options.settings)) return 0;
    return witnessed.forMs;
  }

  /** How long a line must have been lost before its worker counts as dead. */
  get #graceMs(): number {
    return graceMs(this.#options.settings, this.#options.witnessed()?.lineForMs ?? 0);
  }

  /** Of many processes one does the full sweep, and the others leave it at that. */
  async #isOurTurn(): Promise<boolean> {
    const { database, settings } = this.#options;
    this.#sweepAt = monotonicMs() + settings.sweepInterval * (0.9 + Math.random() * 0.2);
    if (this.#hasLeftovers) return true;
    return (await database.run(takeSweepTurn, { withinMs: settings.sweepInterval / 2 })).length > 0;
  }

  /** True if it recovered jobs. */
  async #sweep(withOrphans: boolean): Promise<boolean> {
    const { database, hooks, keepRules, logger, sweeperId } = this.#options;
    const settings = { ...this.#options.settings, crashGrace: this.#graceMs };
    const witnessedMs = (nowMs: number): number => this.#witnessedMs(nowMs);
    const how = { settings, withOrphans, witnessedMs, dryRun: false, hooks, keepRules, sweeperId: sweeperId() };
    const result = await sweep(database, how);
    for (const sentence of describeSweep(result)) logger.warn(sentence);
    this.#hasLeftovers = result.hasLeftovers;
    if (result.hasLeftovers) this.#sweepAt = Math.min(this.#sweepAt, monotonicMs() + leftoverMs);
    return result.recoveredCount > 0;
  }
}
