import { isRepeatable } from "../../db/sqlstate.ts";
import type { AnnouncingRow } from "../../db/statements/claim.ts";
import type { ClaimLimitedRow } from "../../db/statements/claim-limited.ts";
import type { Job } from "../../job.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { Lifeline } from "../lifeline.ts";
import type { JobStart } from "../run/timed-starts.ts";
import type { Outage } from "../settle/outage.ts";
import type { LentClaim } from "../settle/settle-and-claim.ts";
import type { Claimant, Room } from "./claim-request.ts";
import type { TaskIds } from "./known-tasks.ts";
import type { LimitedClaims } from "./limited-claims.ts";
import { PlainClaim, type PlainClaimOptions, type Scan } from "./plain-claim.ts";
import { readClaim } from "./read-claim.ts";
import { ScanRanges } from "./scan-range.ts";
import type { Occasion, Schedule } from "./schedule.ts";

export interface ClaimRoundOptions extends PlainClaimOptions {
  readonly poolId: () => string;
  /** The names by which this worker can be paused. */
  readonly workerNames: () => readonly string[];
  /** With `isChecked`, the claim will check the ids itself. */
  readonly tasks: (isChecked: boolean) => Promise<TaskIds>;
  /** False if some of them were deleted or have other ids now. */
  readonly onTasksChecked: (areKnown: boolean) => void;
  /** Null when there is no room, or too little to be worth a statement now. */
  readonly room: () => Room | null;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  readonly acceptedFlags: readonly string[] | null;
  readonly useNodeTime: boolean;
  readonly outage: Outage;
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

/** Conflicts between transactions that are retried before they count as trouble. */
const maxQuietConflicts = 10;
/** A claim that is lent goes by what the last round knew, if that is no older. */
const maxKnownMs = 5_000;

interface LimitedClaim {
  readonly who: Claimant;
  readonly nameById: ReadonlyMap<number, string>;
  readonly room: Room;
  readonly askedAt: number;
}

/** One round of claims: a job that may have crashed a worker first, then tasks without limits and tasks with limits, which take turns to be first. */
export class ClaimRound {
  readonly #options: ClaimRoundOptions;
  readonly #schedule: Schedule;
  readonly #plain: PlainClaim;
  readonly #ranges = new ScanRanges();
  #turn = 0;
  #error: unknown;
  #known: { readonly who: Claimant; readonly nameById: ReadonlyMap<number, string>; readonly at: number } | undefined;

  constructor(options: ClaimRoundOptions, schedule: Schedule) {
    this.#options = options;
    this.#schedule = schedule;
    this.#plain = new PlainClaim(options);
  }

  /** What made the last round fail that did. */
  get error(): unknown {
    return this.#error;
  }

  /** The last claim did not scan everywhere. */
  get hasLeftOut(): boolean {
    return this.#ranges.hasLeftOut;
  }

  /** Returned jobs may lie behind our marks; scan from the start. */
  startOver(): void {
    this.#ranges.startOver();
  }

  /** A named queue that we held is free for its next job. */
  queueReleased(queueId: number): void {
    this.#ranges.released(queueId);
  }

  /** When the signal aborts, it sends nothing more. */
  async run(room: Room, signal: AbortSignal): Promise<void> {
    const occasion = this.#schedule.begin();
    this.#options.onClaiming();
    try {
      await this.#claim(room, occasion);
    } catch (error) {
      if (!signal.aborted || error !== signal.reason) this.#fail(error);
    }
  }

  async #claim(room: Room, { isHungry, isTimed }: Occasion): Promise<void> {
    const { fleet, limits } = this.#options;
    const range = this.#ranges.next(monotonicMs());
    const seesAll = range.marks.length === 0 && range.withQueues;
    const announcement = isHungry && !limits.isUsed ? fleet.announce({ isTimed, seesAll }) : null;
    const { ids, nameById } = await this.#options.tasks(announcement !== null);
    const who = await this.#claimant(ids);
    this.#known = { who, nameById, at: monotonicMs() };
    await limits.declare(who.poolId);
    if (await this.#claimSuspect(who, nameById)) return;
    const isPlainFirst = this.#turn++ % 2 === 0;
    const claimPlain = async (free: Room): Promise<void> => {
      if (!isHungry) return;
      if (limits.hasAll(ids)) this.#schedule.skipped(monotonicMs());
      else await this.#claimPlain(who, nameById, free, { ...range, announcement });
    };
    if (isPlainFirst) await claimPlain(room);
    const rest = isPlainFirst ? this.#options.room() : room;
    if (rest && monotonicMs() >= limits.scanAt) await this.#claimLimited(who, nameById, rest);
    if (isPlainFirst) return;
    const left = this.#options.room();
    if (left) await claimPlain(left);
    else if (isHungry) this.#schedule.nudge();
  }

  async #claimant(taskIds: readonly number[]): Promise<Claimant> {
    const forbidden = await this.#options.forbiddenFlags();
    return {
      poolId: this.#options.poolId(),
      workerNames: this.#options.workerNames(),
      taskIds,
      forbidden: forbidden && forbidden.length > 0 ? forbidden : null,
      accepted: this.#options.acceptedFlags,
      clock: this.#options.useNodeTime ? new Date() : null,
    };
  }

  /** A claim of limited jobs that goes with another statement; undefined if there is no room for any. */
  lend(): Omit<LentClaim, "onOver"> | undefined {
    const { lifeline, limits, poolId, workerNames, useNodeTime, onClaiming } = this.#options;
    const known = this.#known;
    const askedAt = monotonicMs();
    if (!known || askedAt - known.at > maxKnownMs || lifeline?.hasSuspects) return undefined;
    const room = this.#options.room();
    if (!room || room.idle <= 0) return undefined;
    const { nameById } = known;
    const who = { ...known.who, poolId: poolId(), workerNames: workerNames(), clock: useNodeTime ? new Date() : null };
    onClaiming();
    return {
      // What is settled must not be forgotten in a crash of the server.
      params: { ...limits.begin(who, room), relaxed: false },
      isWatched: lifeline !== undefined,
      // The jobs are settled by then: what goes wrong with the claim is not their settle's fault.
      onAnswer: (row) =>
        this.#answerLimited(row, { who, nameById, room, askedAt }).catch((error: unknown) => this.#fail(error)),
    };
  }

  /** True if it has claimed a job that was running when a worker died. */
  async #claimSuspect(who: Claimant, nameById: ReadonlyMap<number, string>): Promise<boolean> {
    const { lifeline, limits, onClaimed } = this.#options;
    if (!lifeline?.hasSuspects) return false;
    const taskIds = await limits.freeSuspects(who.taskIds);
    const adopted = await lifeline.adopt({ ...who, taskIds }, nameById);
    if (!adopted) return false;
    const { job, isUnread } = adopted;
    this.#schedule.nudge();
    onClaimed([job], 1, 0, new Set(isUnread ? [job] : []));
    return true;
  }

  async #claimPlain(who: Claimant, nameById: ReadonlyMap<number, string>, room: Room, scan: Scan): Promise<void> {
    const { outage, lifeline, limits, fleet } = this.#options;
    this.#plain.describe(nameById, who);
    const askedAt = monotonicMs();
    const result = await this.#plain.claim(who, room, scan, lifeline !== undefined);
    outage.well(this);
    this.#schedule.answered();
    if (!result) {
      this.#waitForHeartbeat();
      return;
    }
    const { jobs, bytes, unread } = readClaim(result.jobs, { poolId: who.poolId, nameById });
    const isFull = jobs.length >= room.jobs;
    if (scan.announcement) {
      fleet.announced(scan.announcement, { jobs: jobs.length, wanted: room.jobs });
      this.#options.onTasksChecked((result as AnnouncingRow).known_tasks === who.taskIds.length);
    }
    const now = monotonicMs();
    const leftOutAt = this.#ranges.learn(now, scan, result, { jobs, isFull });
    this.#schedule.scanned(now, { dueInMs: result.due_in_ms, isFull, leftOutAt });
    this.#options.onPauses(result.pauses, askedAt);
    this.#options.onAnswer(jobs, room.jobs, monotonicMs() - askedAt);
    this.#options.onClaimed(jobs, room.jobs, bytes, unread);
    if (await limits.learn(result.limits, nameById, who.poolId)) this.#schedule.nudge();
  }

  async #claimLimited(who: Claimant, nameById: ReadonlyMap<number, string>, room: Room): Promise<void> {
    const { outage, lifeline, limits } = this.#options;
    const askedAt = monotonicMs();
    const result = await limits.claim(who, room, lifeline !== undefined);
    outage.well(this);
    this.#schedule.answered();
    await this.#answerLimited(result, { who, nameById, room, askedAt });
  }

  async #answerLimited(
    result: ClaimLimitedRow | undefined,
    { who, nameById, room, askedAt }: LimitedClaim,
  ): Promise<void> {
    const { limits } = this.#options;
    if (!result) return limits.defer(this.#waitForHeartbeat());
    const { jobs, bytes, unread } = readClaim(result.jobs, { poolId: who.poolId, nameById });
    limits.answered(result, jobs.length, room);
    this.#options.onPauses(result.pauses, askedAt);
    this.#options.onAnswer(jobs, room.jobs, monotonicMs() - askedAt);
    this.#options.onClaimed(jobs, room.jobs, bytes, unread, limits.starts(result, jobs, room, askedAt));
    if (await limits.learn(result.limits, nameById, who.poolId)) this.#schedule.nudge();
  }

  /** The database does not know us as alive, so nothing was claimed. Returns when to try again. */
  #waitForHeartbeat(): number {
    this.#options.lifeline?.doubt();
    return this.#schedule.doubted(monotonicMs());
  }

  #fail(error: unknown): void {
    const { outage, limits, onError } = this.#options;
    outage.suspect(error);
    // Under a stricter isolation level than ours, claims that meet fail like this; the next one sees the truth.
    const isConflict = isRepeatable(error) && this.#schedule.errors < maxQuietConflicts;
    if (!isConflict) {
      outage.trouble(this, error);
      onError(error);
    }
    limits.defer(this.#schedule.failed(monotonicMs(), isConflict));
    this.#error = error;
  }
}
