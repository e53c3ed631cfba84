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
import type { JobStart } from "../run/timed-starts.ts";
import type { Outage } from "../settle/outage.ts";
import type { Strays } from "../settle/strays.ts";
import type { Announcement, Fleet } from "./fleet.ts";
import type { TaskIds } from "./known-tasks.ts";
import type { LimitedClaims } from "./limited-claims.ts";
import { Marks } from "./marks.ts";
import { readClaim } from "./read-claim.ts";
import { ScanBudget } from "./scan-budget.ts";

/** What a claim may take. */
export interface Room {
  /** How many jobs would find a place. */
  readonly jobs: number;
  /** How many of them would start at once. */
  readonly idle: number;
  /** How many of those may be of one named queue. */
  readonly perQueue: number;
}

/** Who claims, and for what. */
export interface Claimant {
  readonly poolId: string;
  readonly workerNames: readonly string[];
  readonly taskIds: readonly number[];
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  readonly clock: Date | null;
}

/** How a plain claim scans, and what it tells other processes. */
interface Scan {
  readonly marks: readonly Mark[];
  readonly withQueues: boolean;
  readonly announcement: Announcement | null;
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
  readonly limits: LimitedClaims;
  readonly lifeline?: Lifeline | undefined;
  readonly onClaiming: () => void;
  /** Called with what is paused, before the jobs. */
  readonly onPauses: (pauses: string | null, askedAt: number) => void;
  /** Called with the jobs, in the order they should start, and their size in bytes. */
  readonly onClaimed: (
    jobs: readonly Job[],
    wanted: number,
    bytes: number,
    unread: ReadonlySet<Job>,
    starts?: ReadonlyMap<string, JobStart>,
  ) => void;
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
const maxLimitRestMs = 1_000;
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
  /** What was expected since the last claim began: its answer may not know of it yet. */
  #expectAt = Infinity;
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
  /** Tasks with limits and tasks without take turns. */
  #turn = 0;

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
    this.#options.limits.nudge();
    this.#pulse.nudge();
  }

  /** A place in a limit may be free, or limits have changed. */
  nudgeLimited(): void {
    this.#options.limits.freed();
    this.#pulse.nudge();
  }

  /** Returned jobs may lie behind our marks; scan from the start. */
  startOver(): void {
    this.#marks.clear();
    this.nudge();
  }

  /** There may be room now. */
  wake(): void {
    if (this.#isHungry || this.#isOnce || this.#options.limits.isHungry) this.#pulse.nudge();
  }

  /** A job will be due then. */
  expect(inMs: number): void {
    const at = monotonicMs() + inMs;
    this.#expectAt = Math.min(this.#expectAt, at);
    this.#options.limits.expect(at);
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
    const { room, strays, pollInterval, limits } = this.#options;
    while (!signal.aborted) {
      const now = monotonicMs();
      this.#turnedAt = now;
      this.#isTimed = now >= this.#nextScanAt;
      if (this.#isTimed) this.#isHungry = true;
      const free = this.#isHungry || now >= limits.scanAt ? room() : null;
      if (now >= strays.searchAt) await this.#searchStrays();
      else if (free) await this.#claim(free);
      else await this.#rest(Math.min(this.#nextAt - now, pollInterval()), signal);
    }
  }

  get #nextAt(): number {
    const { strays, limits } = this.#options;
    const limitedAt = limits.scanAt > monotonicMs() ? limits.scanAt : Infinity;
    return Math.min(this.#isHungry ? Infinity : this.#nextScanAt, limitedAt, strays.searchAt);
  }

  get #nextScanAt(): number {
    return Math.min(this.#scanAt, this.#pollAt, this.#relyAt);
  }

  /** Claims until a scan finds nothing and `isQuiet` says that nothing more can come of what runs. */
  async runUntilEmpty(signal: AbortSignal, isQuiet: () => boolean): Promise<void> {
    this.#isOnce = true;
    let busyAt = monotonicMs();
    while (!signal.aborted) {
      this.#turnedAt = monotonicMs();
      if (!isQuiet()) busyAt = this.#turnedAt;
      if (this.#turnedAt >= this.#options.strays.searchAt) await this.#searchStrays();
      const isDue = this.#isHungry || monotonicMs() >= this.#options.limits.scanAt;
      const room = isDue ? this.#options.room() : null;
      if (room) {
        await this.#claim(room);
        if (this.#errors > maxErrorsWhenOnce || (this.#errors > 0 && !willPass(this.#error))) throw this.#error;
      } else if (this.#mustScanAgain) {
        await this.#rest(this.#nextScanAt - monotonicMs(), signal);
        this.#isHungry = true;
      } else if (this.#isAwaitingLimit && this.#turnedAt - busyAt <= maxLimitRestMs) {
        await this.#rest(this.#options.limits.scanAt - monotonicMs(), signal);
      } else if (isQuiet()) {
        if (!isDue) return;
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

  /** A run that is to end waits for a limit that may admit a job soon. */
  get #isAwaitingLimit(): boolean {
    const ms = this.#options.limits.scanAt - monotonicMs();
    return ms > 0 && ms <= maxLimitRestMs;
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
    const { useNodeTime, lifeline, fleet, limits } = this.#options;
    // What nudges us from here on happened after this scan began.
    const isHungry = this.#isHungry;
    this.#isHungry = false;
    this.#expectAt = Infinity;
    this.#options.onClaiming();
    try {
      const isQuiet = this.#isTimed && !this.#isContended;
      this.#isTimed = false;
      const marks = this.#marksToStartAt();
      const withQueues = !this.#queueScans.isCostly || monotonicMs() >= this.#queueScans.dueAt;
      const seesAll = marks.length === 0 && withQueues;
      const announcement = isHungry && !limits.isUsed ? fleet.announce({ isTimed: isQuiet, seesAll }) : null;
      const { ids, nameById } = await this.#options.tasks(announcement !== null);
      const forbidden = await this.#options.forbiddenFlags();
      const poolId = this.#options.poolId();
      await limits.declare(poolId);
      const who = {
        poolId,
        workerNames: this.#options.workerNames(),
        taskIds: ids,
        forbidden: forbidden && forbidden.length > 0 ? forbidden : null,
        accepted: this.#options.acceptedFlags,
        clock: useNodeTime ? new Date() : null,
      };
      if (lifeline?.hasSuspects) {
        await limits.freeSuspects(ids);
        const adopted = await lifeline.adopt(who, nameById);
        this.#isHungry ||= adopted !== null;
        if (adopted) {
          const { job, isUnread } = adopted;
          return this.#options.onClaimed([job], 1, 0, new Set(isUnread ? [job] : []));
        }
      }
      const isPlainFirst = this.#turn++ % 2 === 0;
      const claimPlain = async (free: Room): Promise<void> => {
        if (!isHungry) return;
        if (limits.hasAll(ids)) this.#scanned(Infinity);
        else await this.#claimPlain(who, nameById, free, { marks, withQueues, announcement });
      };
      if (isPlainFirst) await claimPlain(room);
      const rest = isPlainFirst ? this.#options.room() : room;
      if (rest && monotonicMs() >= limits.scanAt) await this.#claimLimited(who, nameById, rest);
      if (isPlainFirst) return;
      const left = this.#options.room();
      if (left) await claimPlain(left);
      else this.#isHungry ||= isHungry;
    } catch (error) {
      this.#onError(error);
    }
  }

  async #claimPlain(who: Claimant, nameById: ReadonlyMap<number, string>, room: Room, scan: Scan): Promise<void> {
    const { outage, lifeline, limits, fleet } = this.#options;
    const { marks, withQueues, announcement } = scan;
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
    const { jobs, bytes, unread } = readClaim(result.jobs, { poolId: who.poolId, nameById });
    if (announcement) {
      fleet.announced(announcement, jobs.length < room.jobs);
      this.#options.onTasksChecked((result as AnnouncingRow).known_tasks === who.taskIds.length);
    }
    this.#learn(result, { wanted: room.jobs, claimed: jobs.length, isFullScan: marks.length === 0, withQueues });
    this.#options.onPauses(result.pauses, askedAt);
    this.#options.onAnswer(jobs, room.jobs, monotonicMs() - askedAt);
    this.#options.onClaimed(jobs, room.jobs, bytes, unread);
    if (await limits.learn(result.limits, nameById, who.poolId)) this.#isHungry = true;
  }

  async #claimLimited(who: Claimant, nameById: ReadonlyMap<number, string>, room: Room): Promise<void> {
    const { outage, lifeline, limits } = this.#options;
    const askedAt = monotonicMs();
    const result = await limits.claim(who, room, lifeline !== undefined);
    outage.well(this);
    this.#errors = 0;
    if (!result) {
      limits.defer(monotonicMs() + doubtMs);
      return this.#waitForHeartbeat(lifeline);
    }
    const { jobs, bytes, unread } = readClaim(result.jobs, { poolId: who.poolId, nameById });
    limits.answered(result, jobs.length, room);
    this.#options.onPauses(result.pauses, askedAt);
    this.#options.onAnswer(jobs, room.jobs, monotonicMs() - askedAt);
    this.#options.onClaimed(jobs, room.jobs, bytes, unread, limits.starts(result, askedAt));
    if (await limits.learn(result.limits, nameById, who.poolId)) this.#isHungry = true;
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
    this.#scanned(
      Math.min(
        now + dueInMs,
        isFullScan ? Infinity : this.#fullScans.dueAt,
        withQueues ? Infinity : this.#queueScans.dueAt,
      ),
    );
  }

  /** The next scan is then, or at the next poll. */
  #scanned(nextAt: number): void {
    this.#pollAt = monotonicMs() + this.#options.pollInterval();
    this.#relyAt = Infinity;
    this.#scanAt = Math.min(nextAt, this.#expectAt);
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
    this.#options.limits.defer(this.#scanAt);
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
