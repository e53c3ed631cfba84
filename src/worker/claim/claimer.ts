import { createHash } from "node:crypto";
import type { Database } from "../../db/database.ts";
import { isAway, isRepeatable } from "../../db/sqlstate.ts";
import {
  type AnnouncingRow,
  type ClaimParams,
  type ClaimResultRow,
  claimJobs,
  claimJobsAlive,
  claimJobsAliveAnnouncing,
  claimJobsAnnouncing,
  type Mark,
} from "../../db/statements/claim.ts";
import type { Job } from "../../job.ts";
import { backoffMs } from "../../util/backoff.ts";
import { Pulse } from "../../util/pulse.ts";
import { staggeredShare } from "../../util/stagger.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { Lifeline } from "../lifeline.ts";
import type { Outage } from "../settle/outage.ts";
import type { Strays } from "../settle/strays.ts";
import type { Announcement, Fleet } from "./fleet.ts";
import type { TaskIds } from "./known-tasks.ts";
import { Marks } from "./marks.ts";
import { readClaim } from "./read-claim.ts";
import { ScanBudget } from "./scan-budget.ts";

/** What a claim may take. */
export interface Room {
  /** How many jobs would find a place. */
  readonly jobs: number;
  /** How many of those may be of one named queue. */
  readonly perQueue: number;
}

export interface ClaimerOptions {
  readonly database: Database;
  readonly poolId: () => string;
  /** The names by which this worker can be paused. */
  readonly workerNames: () => readonly string[];
  readonly fleet: Fleet;
  readonly schema: string;
  /** With `isChecked`, the claim will check the ids itself. */
  readonly tasks: (isChecked: boolean) => Promise<TaskIds>;
  /** False if some of them were deleted or have other ids now. */
  readonly onTasksChecked: (areKnown: boolean) => void;
  /** Null when there is no room, or too little to be worth a statement now. */
  readonly room: () => Room | null;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  readonly acceptedFlags: readonly string[] | null;
  readonly useNodeTime: boolean;
  /** The server may forget a claim when it crashes. */
  readonly relaxed: boolean;
  readonly pollInterval: () => number;
  readonly outage: Outage;
  readonly strays: Strays;
  readonly lifeline?: Lifeline | undefined;
  readonly onClaiming: () => void;
  /** Called with what is paused, before the jobs. */
  readonly onPauses: (pauses: string | null, askedAt: number) => void;
  /** Called with the jobs, in the order they should start, and their size in bytes. */
  readonly onClaimed: (jobs: readonly Job[], wanted: number, bytes: number, unread: ReadonlySet<Job>) => void;
  /** Called for every response, before the jobs. */
  readonly onAnswer: (jobs: readonly Job[], wanted: number, durationMs: number) => void;
  readonly onError: (error: unknown) => void;
}

type ClaimFlags = Pick<ClaimParams, "forbidden" | "accepted">;

const errorBackoff = { minMs: 200, maxMs: 5_000, factor: 1.5 };
/** Another transaction holds a job that is due: scan again soon, and less often if it does not let go. */
const contendedBackoff = { minMs: 10, maxMs: 500, factor: 1.5 };
/** How much later than a process that knows of a due job others claim, if they do not hear of it. */
const relyMs = { min: 50, max: 250 };
/** How long to wait for a heartbeat after the database did not know us as alive. */
const doubtMs = 200;
/** How long a run that is to end waits until it checks whether it may. */
const quietRestMs = 15;
/** A run that ends when the work is done does not wait indefinitely for a database, or for others to let go. */
const maxErrorsWhenOnce = 8;
const maxContendedWhenOnce = 10;
/** Conflicts between transactions that are retried before they count as trouble. */
const maxQuietConflicts = 10;
/** Node's timers fire at once when asked for more. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Asks the database for jobs, for the whole pool: when there may be some and there is room for them, when the next known one
 * falls due, and once every poll interval in any case.
 *
 * A claim scans from the start as long as that is cheap. Where it is not (finished rows that cannot be vacuumed), it starts at the marks
 * of earlier claims; a full scan then follows as soon as its budget allows, for jobs that came in behind the marks.
 */
export class Claimer {
  readonly #options: ClaimerOptions;
  readonly #pulse = new Pulse();
  #isHungry = true;
  /** When a job falls due, as far as we know. */
  #scanAt = Infinity;
  #pollAt = 0;
  /** The same as another process told it, and a little later: it will claim itself. */
  #relyAt = Infinity;
  /** Time has come, not a notification. */
  #isTimed = false;
  #errors = 0;
  #error: unknown;
  #turnedAt = monotonicMs();
  #isContended = false;
  #contentions = 0;
  /** Then the end of a job matters even if there is nothing to claim: it may be the end of all. */
  #isOnce = false;
  #described: { readonly nameById: ReadonlyMap<number, string>; readonly flags: string } | undefined;
  readonly #marks = new Marks();
  readonly #fullScans = new ScanBudget();
  readonly #queueScans = new ScanBudget();
  /** A claim from the marks may have passed over jobs behind them, and one without queues over theirs. */
  #owesFullScan = false;
  #owesQueueScan = false;

  constructor(options: ClaimerOptions) {
    this.#options = options;
  }

  /** When the loop last turned, on the monotonic clock. */
  get turnedAt(): number {
    return this.#turnedAt;
  }

  /** There may be jobs now. */
  nudge(): void {
    this.#isHungry = true;
    this.#pulse.nudge();
  }

  /** Returned jobs may lie behind our marks; scan from the start. */
  startOver(): void {
    this.#marks.clear();
    this.nudge();
  }

  /** There may be room now. */
  wake(): void {
    if (this.#isHungry || this.#isOnce) this.#pulse.nudge();
  }

  /** A job will be due then. */
  expect(inMs: number): void {
    const at = monotonicMs() + inMs;
    if (at >= this.#scanAt) return;
    this.#scanAt = at;
    this.#pulse.nudge();
  }

  /** Another process has scanned for jobs like ours, and will again when the next one falls due. */
  rely(dueInMs: number | null): void {
    const { pollInterval, fleet } = this.#options;
    const now = monotonicMs();
    this.#pollAt = Math.max(this.#pollAt, Math.min(now + pollInterval() * staggeredShare(), fleet.presenceAt));
    this.#relyAt = dueInMs === null ? Infinity : now + dueInMs + relyMs.min + Math.random() * (relyMs.max - relyMs.min);
    this.#pulse.nudge();
  }

  /** Claims until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { room, strays, pollInterval } = this.#options;
    while (!signal.aborted) {
      const now = monotonicMs();
      this.#turnedAt = now;
      this.#isTimed = now >= this.#nextScanAt;
      if (this.#isTimed) this.#isHungry = true;
      const free = this.#isHungry ? room() : null;
      if (now >= strays.searchAt) await this.#searchStrays();
      else if (free) await this.#claim(free);
      else await this.#rest(Math.min(this.#nextAt - now, pollInterval()), signal);
    }
  }

  get #nextAt(): number {
    return Math.min(this.#isHungry ? Infinity : this.#nextScanAt, this.#options.strays.searchAt);
  }

  get #nextScanAt(): number {
    return Math.min(this.#scanAt, this.#pollAt, this.#relyAt);
  }

  /** Claims until a scan finds nothing and `isQuiet` says that nothing more can come of what runs. */
  async runUntilEmpty(signal: AbortSignal, isQuiet: () => boolean): Promise<void> {
    this.#isOnce = true;
    while (!signal.aborted) {
      this.#turnedAt = monotonicMs();
      if (this.#turnedAt >= this.#options.strays.searchAt) await this.#searchStrays();
      const room = this.#isHungry ? this.#options.room() : null;
      if (room) {
        await this.#claim(room);
        if (this.#errors > maxErrorsWhenOnce || (this.#errors > 0 && !willPass(this.#error))) throw this.#error;
      } else if (this.#mustScanAgain) {
        await this.#rest(this.#nextScanAt - monotonicMs(), signal);
        this.#isHungry = true;
      } else if (isQuiet()) {
        if (!this.#isHungry) return;
        await this.#pulse.wait(quietRestMs, signal);
      } else {
        await this.#rest(this.#options.pollInterval(), signal);
      }
    }
  }

  /** The last claim did not see everything. */
  get #mustScanAgain(): boolean {
    if (this.#isHungry) return false;
    if (this.#errors > 0 || this.#owesFullScan || this.#owesQueueScan) return true;
    return this.#isContended && this.#contentions < maxContendedWhenOnce;
  }

  #rest(ms: number, signal: AbortSignal): Promise<void> {
    return this.#pulse.wait(Math.min(ms, maxTimerMs), signal);
  }

  /** What comes back may be for us. */
  async #searchStrays(): Promise<void> {
    try {
      await this.#options.strays.search();
      this.#isHungry = true;
    } catch (error) {
      this.#options.outage.trouble(this, error);
    }
  }

  async #claim(room: Room): Promise<void> {
    const { useNodeTime, outage, lifeline, fleet } = this.#options;
    // What nudges us from here on happened after this scan began.
    this.#isHungry = false;
    this.#options.onClaiming();
    try {
      const isQuiet = this.#isTimed && !this.#isContended;
      this.#isTimed = false;
      const marks = this.#marksToStartAt();
      const withQueues = !this.#queueScans.isCostly || monotonicMs() >= this.#queueScans.dueAt;
      const announcement = fleet.announce({ isTimed: isQuiet, seesAll: marks.length === 0 && withQueues });
      const { ids, nameById } = await this.#options.tasks(announcement !== null);
      const forbidden = await this.#options.forbiddenFlags();
      const poolId = this.#options.poolId();
      const who = {
        poolId,
        workerNames: this.#options.workerNames(),
        taskIds: ids,
        forbidden: forbidden && forbidden.length > 0 ? forbidden : null,
        accepted: this.#options.acceptedFlags,
        clock: useNodeTime ? new Date() : null,
      };
      if (lifeline?.hasSuspects) {
        const adopted = await lifeline.adopt(who, nameById);
        this.#isHungry ||= adopted !== null;
        if (adopted) {
          const { job, isUnread } = adopted;
          return this.#options.onClaimed([job], 1, 0, new Set(isUnread ? [job] : []));
        }
      }
      this.#describe(nameById, who);
      const askedAt = monotonicMs();
      const result = await this.#ask(
        {
          ...who,
          wanted: room.jobs,
          perQueue: room.perQueue,
          marks,
          withQueues,
          relaxed: this.#options.relaxed,
        },
        announcement,
      );
      outage.well(this);
      this.#errors = 0;
      if (!result) return this.#waitForHeartbeat(lifeline);
      const { jobs, bytes, unread } = readClaim(result.jobs, { poolId, nameById });
      if (announcement) {
        fleet.announced(announcement, jobs.length < room.jobs);
        this.#options.onTasksChecked((result as AnnouncingRow).known_tasks === ids.length);
      }
      this.#learn(result, { wanted: room.jobs, claimed: jobs.length, isFullScan: marks.length === 0, withQueues });
      this.#options.onPauses(result.pauses, askedAt);
      this.#options.onAnswer(jobs, room.jobs, monotonicMs() - askedAt);
      this.#options.onClaimed(jobs, room.jobs, bytes, unread);
    } catch (error) {
      this.#onError(error);
    }
  }

  #describe(nameById: ReadonlyMap<number, string>, { forbidden, accepted }: ClaimFlags): void {
    const flags = JSON.stringify([forbidden, accepted]);
    if (nameById === this.#described?.nameById && flags === this.#described.flags) return;
    this.#described = { nameById, flags };
    this.#options.fleet.describe(kindOf(this.#options.schema, nameById, [forbidden, accepted]));
  }

  async #ask(params: ClaimParams, announcement: Announcement | null): Promise<ClaimResultRow | undefined> {
    const { database, lifeline } = this.#options;
    if (!announcement) return (await database.run(lifeline ? claimJobsAlive : claimJobs, params))[0];
    const { text, always } = announcement;
    const statement = lifeline ? claimJobsAliveAnnouncing : claimJobsAnnouncing;
    return (await database.run(statement, { ...params, news: text, always }))[0];
  }

  /** The database does not know us as alive, so nothing was claimed. */
  #waitForHeartbeat(lifeline: Lifeline | undefined): void {
    lifeline?.doubt();
    this.#isContended = true;
    this.#contentions++;
    this.#scanAt = monotonicMs() + doubtMs;
    this.#pollAt = this.#scanAt;
  }

  /** Empty for a full scan. */
  #marksToStartAt(): readonly Mark[] {
    if (!this.#fullScans.isCostly) return [];
    if (this.#owesFullScan && monotonicMs() >= this.#fullScans.dueAt) return [];
    return this.#marks.list();
  }

  /** Decides when to scan again. */
  #learn(
    result: ClaimResultRow,
    claim: { wanted: number; claimed: number; isFullScan: boolean; withQueues: boolean },
  ): void {
    const { claimed, isFullScan, withQueues } = claim;
    const now = monotonicMs();
    if (isFullScan) this.#fullScans.spend(now, result.tasks_ms, claimed);
    if (withQueues) this.#queueScans.spend(now, result.queues_ms, claimed);
    this.#owesFullScan = !isFullScan;
    this.#owesQueueScan = !withQueues;
    this.#marks.learn(JSON.parse(result.marks));

    const isFull = claimed >= claim.wanted;
    this.#isHungry ||= isFull;
    this.#isContended = result.due_in_ms !== null && result.due_in_ms <= 0;
    this.#contentions = this.#isContended ? this.#contentions + 1 : 0;
    const dueInMs = this.#isContended
      ? backoffMs(contendedBackoff, this.#contentions - 1)
      : (result.due_in_ms ?? Infinity);
    this.#pollAt = now + this.#options.pollInterval();
    this.#relyAt = Infinity;
    this.#scanAt = Math.min(
      now + dueInMs,
      isFullScan ? Infinity : this.#fullScans.dueAt,
      withQueues ? Infinity : this.#queueScans.dueAt,
    );
  }

  #onError(error: unknown): void {
    const { outage, pollInterval, onError } = this.#options;
    outage.suspect(error);
    // Under a stricter isolation level than ours, claims that meet fail like this; the next one sees the truth.
    const isConflict = isRepeatable(error) && this.#errors < maxQuietConflicts;
    if (!isConflict) {
      outage.trouble(this, error);
      onError(error);
    }
    this.#isHungry = false;
    const backoff = backoffMs(isConflict ? contendedBackoff : errorBackoff, this.#errors);
    this.#scanAt = monotonicMs() + Math.min(pollInterval(), backoff);
    this.#pollAt = this.#scanAt;
    this.#errors++;
    this.#error = error;
  }
}

/** Scans of processes that are told alike find the same jobs. */
function kindOf(schema: string, nameById: ReadonlyMap<number, string>, flags: readonly unknown[]): string {
  const all = JSON.stringify([schema, [...nameById.values()].sort(), flags]);
  return createHash("sha1").update(all).digest("base64url");
}

function willPass(error: unknown): boolean {
  return isAway(error) || isRepeatable(error);
}
