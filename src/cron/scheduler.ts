import { readKnownCrontabs, registerCrontabs } from "../db/statements/cron.ts";
import { toError } from "../errors.ts";
import type { Emit } from "../events.ts";
import { backoffMs } from "../util/backoff.ts";
import type { Cron } from "../worker.ts";
import { findMissedRuns } from "./backfill.ts";
import { type Clock, floorToMinute, msPerMinute, systemClock } from "./clock.ts";
import type { ParsedCronItem } from "./cron-item.ts";
import { databaseClock } from "./database-clock.ts";
import { eachDue, isDue } from "./due.ts";
import { requestRun } from "./request-run.ts";
import { type ScheduleOptions, scheduleRuns } from "./schedule-runs.ts";
import { findFirstTick, findNextTick } from "./ticks.ts";

export interface CronOptions extends ScheduleOptions {
  /** Asked anew for each tick, so the items may change at any time. */
  readonly items: () => readonly ParsedCronItem[];
  readonly emit: Emit;
  /** The zone of items that name none. Without it: UTC, and jobs carry no local time. */
  readonly timeZone?: string | undefined;
  readonly clock?: Clock;
  /** Told of each moment that was looked at and seen to, with the identifiers of the items that were due. */
  readonly onTick?: ((at: Date, identifiers: readonly string[]) => void) | undefined;
}

/** A scheduler at work. */
export interface RunningCron extends Cron {
  /** Schedules these items from now on, in place of all others. */
  replaceItems(items: readonly ParsedCronItem[]): Promise<void>;
}

/** As often as LISTEN tries: a database that is back must not find the next minute missed as well. */
const retry = { minMs: 200, maxMs: 5_000, factor: 1.5 };

/**
 * Schedules items until released. Any number of processes may do so with the same items: each run is scheduled once. A
 * unreachable database is waited for.
 */
export function startCron(options: CronOptions): RunningCron {
  return new CronScheduler(options);
}

class CronScheduler implements RunningCron {
  readonly promise: Promise<void>;
  _active = true;
  readonly #options: CronOptions;
  #items: () => readonly ParsedCronItem[];
  #clock: Clock;
  readonly #stop = new AbortController();
  #failures = 0;
  /** The tick that is being scheduled; still to be done if the database fails meanwhile. */
  #owedTick: number | undefined;
  /** The latest tick that was scheduled; an earlier one comes only after the clock was set back. */
  #latestTick = -Infinity;

  constructor(options: CronOptions) {
    this.#options = { ...options, database: options.database.until(this.#stop.signal) };
    this.#items = options.items;
    this.#clock = options.clock ?? systemClock;
    this.promise = this.#run();
  }

  release(): Promise<void> {
    this._active = false;
    this.#stop.abort();
    return this.promise;
  }

  async replaceItems(items: readonly ParsedCronItem[]): Promise<void> {
    this.#items = () => items;
    try {
      await this.#register(new Date(this.#clock.now()));
    } catch (thrown) {
      // Not lost: an entry that is unknown when it first runs is registered then.
      this.#options.onTrouble?.({ error: toError(thrown) });
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    // Let the caller finish before the first event says that cron is starting.
    await Promise.resolve();
    while (!signal.aborted) {
      try {
        await this.#catchUpAndTick();
      } catch (thrown) {
        if (signal.aborted) return;
        const retryInMs = backoffMs(retry, this.#failures++);
        this.#options.onTrouble?.({ error: toError(thrown), retryInMs });
        await this.#clock.sleep(retryInMs, signal);
      }
    }
  }

  async #catchUpAndTick(): Promise<void> {
    const { emit } = this.#options;
    const start = new Date(this.#startTime());
    emit("cron:starting", { cron: this, start });
    await this.#backfill(start);
    if (this.#stop.signal.aborted) return;
    emit("cron:started", { cron: this, start });
    await this.#tickFrom(findFirstTick(this.#ticking(), start.getTime()));
  }

  /** A tick that failed is done again if its minute is not over yet; after that, it is for the back-fill. */
  #startTime(): number {
    const now = this.#clock.now();
    const owed = this.#owedTick;
    return owed !== undefined && floorToMinute(owed) === floorToMinute(now) ? owed : now;
  }

  async #backfill(start: Date): Promise<void> {
    const { database, emit, timeZone } = this.#options;
    const items = this.#items();
    if (items.length === 0) return;
    const known = await database.run(readKnownCrontabs, undefined);
    await this.#register(start);
    for (const { at, runs } of findMissedRuns(items, known, start, timeZone)) {
      if (this.#stop.signal.aborted) return;
      const requests = runs.map(({ item }) => requestRun(item, at, { backfilled: true, timeZone }));
      emit("cron:backfill", {
        cron: this,
        itemsToBackfill: requests.map(({ identifier, job }, index) => {
          const { known_since, last_execution } = runs[index]!.known;
          return { identifier, job, known_since, last_execution };
        }),
        timestamp: at.toISOString(),
      });
      await scheduleRuns(this.#options, at, requests);
    }
  }

  #ticking(): { readonly items: readonly ParsedCronItem[]; readonly timeZone: string | undefined } {
    return { items: this.#items(), timeZone: this.#options.timeZone };
  }

  async #register(since: Date): Promise<void> {
    const identifiers = this.#items().map((item) => item.identifier);
    if (identifiers.length > 0) await this.#options.database.run(registerCrontabs, { identifiers, since });
  }

  async #tickFrom(first: number): Promise<void> {
    const { emit } = this.#options;
    const { signal } = this.#stop;
    let expected = first;
    while (!signal.aborted) {
      if (expected - this.#clock.now() > msPerMinute) expected = await this.#findTickAfterJump();
      await this.#clock.sleep(Math.max(expected + 1 - this.#clock.now(), 1), signal);
      if (signal.aborted) return;
      const current = this.#clock.now();
      const timing = { cron: this, currentTimestamp: current, expectedTimestamp: expected };
      if (current < expected) {
        emit("cron:prematureTimer", timing);
        continue;
      }
      const isLate = floorToMinute(current) > floorToMinute(expected);
      if (isLate) emit("cron:overdueTimer", timing);
      await this.#tick(expected, isLate);
      this.#failures = 0;
      expected = findNextTick(this.#ticking(), expected);
    }
  }

  /**
   * Every minute has its tick, so one that is further off than that means that the machine's clock was set back. Which of
   * its two times is right is for the database to say: its clock is the one that all processes share.
   */
  async #findTickAfterJump(): Promise<number> {
    this.#clock = await databaseClock(this.#options.database);
    return findFirstTick(this.#ticking(), this.#clock.now());
  }

  async #tick(tick: number, isLate: boolean): Promise<void> {
    const { timeZone, onTick } = this.#options;
    const at = new Date(tick);
    const due = this.#items().filter(
      (item) => isDue(item, at, timeZone) && !(isLate && this.#isMissedForGood(item, at)),
    );
    if (due.length > 0) await this.#schedule(tick, at, due);
    onTick?.(
      at,
      due.map(({ identifier }) => identifier),
    );
  }

  async #schedule(tick: number, at: Date, due: readonly ParsedCronItem[]): Promise<void> {
    const { emit, timeZone } = this.#options;
    const requests = due.map((item) => requestRun(item, at, { backfilled: false, timeZone }));
    const event = {
      cron: this,
      timestamp: tick,
      jobsAndIdentifiers: requests.map(({ identifier, job }) => ({ identifier, job })),
    };
    emit("cron:schedule", event);
    this.#owedTick = tick;
    await scheduleRuns(this.#options, at, requests, tick <= this.#latestTick);
    this.#latestTick = Math.max(tick, this.#latestTick);
    this.#owedTick = undefined;
    emit("cron:scheduled", event);
  }

  /** Of a time that this process slept through, an item may want only its last run, or none. */
  #isMissedForGood(item: ParsedCronItem, at: Date): boolean {
    if (item.options.missed === "none") return true;
    if (item.options.missed !== "last") return false;
    const later = eachDue(item, { from: at, until: new Date(this.#clock.now()) }, this.#options.timeZone).next();
    return !later.done;
  }
}
