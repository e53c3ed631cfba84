import type { Database } from "../../db/database.ts";
import {
  type ClaimLimitedParams,
  type ClaimLimitedRow,
  claimLimitedJobs,
  claimLimitedJobsAlive,
  type LimitReport,
  type StartRow,
  type Turns,
} from "../../db/statements/claim-limited.ts";
import { type DeclaredLimit, declareLimits, freeRatedSuspects } from "../../db/statements/limits.ts";
import type { Job } from "../../job.ts";
import { backoffMs } from "../../util/backoff.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { JobStart } from "../run/timed-starts.ts";
import type { Claimant, Room } from "./claim-request.ts";
import { maxHoldMs } from "./hold-watch.ts";
import type { Lateness } from "./lateness.ts";

/** The limits that this process's code defines, for the tasks that it has. */
export interface LimitDeclaration {
  readonly tasks: readonly string[];
  readonly definitions: readonly DeclaredLimit[];
}

export interface LimitedClaimsOptions {
  readonly database: Database;
  readonly declaration: () => LimitDeclaration;
  readonly relaxed: boolean;
  readonly lateness: Lateness;
  /** How many claimed jobs wait for their moment. */
  readonly timed: () => number;
  /** So many of those need only slots that more would miss their moment. */
  readonly isCrowded: () => boolean;
  /** What is claimed ahead of free slots is judged by the pace of jobs, so it starts within a moment. */
  readonly isPaced: boolean;
  readonly pollInterval: () => number;
  /** Tasks of this pool have limits, or other tasks than before. */
  readonly onLimited: () => void;
}

/** A settle may make a claim by the way if the last one took no longer. */
const quickMs = 25;
/** For how long what a claim has found is news. */
const newsMs = 50;
const contendedBackoff = { minMs: 10, maxMs: 500, factor: 1.5 };

/**
 * Which of a pool's tasks have limits, when to claim jobs of those, and where their keys were left. The database decides what may start: a pool that
 * knows nothing of a limit gets none of its jobs.
 */
export class LimitedClaims {
  readonly #options: LimitedClaimsOptions;
  readonly #taskIds = new Set<number>();
  #turns: Turns = {};
  #nth = Math.floor(Math.random() * 1_000);
  #isHungry = true;
  /** Nothing but a freed place, a change of limits or time helps. */
  #isBlocked = false;
  #scanAt = Infinity;
  /** What was expected since the last claim began: its answer may not know of it yet. */
  #expectAt = Infinity;
  #contentions = 0;
  #areWide = false;
  #answeredAt = 0;
  #tookMs = 0;
  #hasDeclared = false;
  #hasAnswered = false;

  constructor(options: LimitedClaimsOptions) {
    this.#options = options;
  }

  /** A task of this pool has limits. */
  get isUsed(): boolean {
    return this.#taskIds.size > 0;
  }

  /** The last claim has taken what the limits allowed, and nothing is known that would let it take more. */
  isWaiting(now: number): boolean {
    return this.#contentions === 0 && now < this.scanAt;
  }

  /** The last claim took so little that a statement can make another one by the way. */
  get isQuick(): boolean {
    return this.#tookMs <= quickMs;
  }

  /** A moment ago, a claim found many places or tokens free in all limits. */
  arePlenty(now: number): boolean {
    return this.#areWide && now - this.#answeredAt < newsMs;
  }

  isLimited(taskId: number): boolean {
    return this.#taskIds.has(taskId);
  }

  /** All tasks have limits, so that a plain claim has nothing to find. */
  hasAll(taskIds: readonly number[]): boolean {
    return this.#taskIds.size > 0 && taskIds.every((id) => this.#taskIds.has(id));
  }

  /** When to claim next, on the monotonic clock; Infinity without limited tasks. */
  get scanAt(): number {
    if (this.#taskIds.size === 0) return Infinity;
    // The end of a job asks again.
    if (this.#options.isPaced && this.#options.isCrowded()) return Infinity;
    return this.#isHungry ? 0 : this.#scanAt;
  }

  /** Jobs may have come. */
  nudge(): void {
    if (!this.#isBlocked) this.#isHungry = true;
  }

  /** A place may be free, or limits have changed. */
  freed(): void {
    this.#isBlocked = false;
    this.#isHungry = true;
  }

  /** A job will be due then. */
  expect(at: number): void {
    this.#expectAt = Math.min(this.#expectAt, at);
    this.#scanAt = Math.min(this.#scanAt, at);
  }

  /** A claim failed: it is tried again then. */
  defer(at: number): void {
    this.#isHungry = false;
    this.#scanAt = at;
  }

  /** The task list may have changed. */
  forget(): void {
    this.#hasDeclared = false;
  }

  /** Notes what our code defines, before the first claim. */
  async declare(declaredBy: string): Promise<void> {
    if (this.#hasDeclared) return;
    const { tasks, definitions } = this.#options.declaration();
    if (definitions.length > 0) await this.#options.database.run(declareLimits, { tasks, definitions, declaredBy });
    this.#hasDeclared = true;
  }

  /** Remembers the limited tasks; returns whether one no longer is. The first answer may tell of limits that earlier code has declared and ours no longer does. */
  async learn(report: string | null, nameById: ReadonlyMap<number, string>, declaredBy: string): Promise<boolean> {
    const limited: LimitReport = report === null ? {} : JSON.parse(report);
    const ids = Object.keys(limited).map(Number);
    const isNews = ids.some((id) => !this.#taskIds.has(id));
    const isFree = [...this.#taskIds].some((id) => !(id in limited));
    this.#taskIds.clear();
    for (const id of ids) this.#taskIds.add(id);
    if (isNews) {
      this.freed();
      this.#options.onLimited();
    }
    if (!this.#hasAnswered) await this.#declareNone(limited, nameById, declaredBy);
    return isFree;
  }

  async #declareNone(limited: LimitReport, nameById: ReadonlyMap<number, string>, declaredBy: string): Promise<void> {
    this.#hasAnswered = true;
    const { definitions } = this.#options.declaration();
    if (definitions.length > 0) return;
    const ids = Object.keys(limited).map(Number);
    const tasks = ids.filter((id) => limited[id]).flatMap((id) => nameById.get(id) ?? []);
    if (tasks.length > 0) await this.#options.database.run(declareLimits, { tasks, definitions, declaredBy });
  }

  /** Parked jobs of rate-limited tasks go back in line, where they get a token. Gives the other tasks, whose parked jobs can be adopted. */
  async freeSuspects(taskIds: readonly number[]): Promise<readonly number[]> {
    const [row] = await this.#options.database.run(freeRatedSuspects, { taskIds });
    if (row && row.freed > 0) this.freed();
    return row ? taskIds.filter((id) => !row.rated.includes(id)) : taskIds;
  }

  /** Gives no row if the database does not know us as alive. */
  async claim(who: Claimant, room: Room, isWatched: boolean): Promise<ClaimLimitedRow | undefined> {
    const params = this.begin(who, room);
    const [row] = await this.#options.database.run(isWatched ? claimLimitedJobsAlive : claimLimitedJobs, params);
    return row;
  }

  /** A claim begins: what is heard from here on happened after it. */
  begin(who: Claimant, room: Room): ClaimLimitedParams {
    const { relaxed, lateness, isPaced, timed } = this.#options;
    this.#isHungry = false;
    this.#expectAt = Infinity;
    // Where jobs are so short that they are claimed ahead, no slot is ever idle, and the next one is free in a moment.
    const wanted = Math.max(1, room.idle);
    const ahead = Math.max(0, room.jobs - wanted);
    return {
      ...who,
      wanted,
      ahead,
      timedAhead: isPaced ? Math.max(0, Math.min(ahead, lateness.ahead - timed())) : 0,
      perQueue: room.perQueue,
      withQueues: true,
      turns: this.#turns,
      nth: this.#nth++,
      relaxed,
      lates: lateness.byTask,
      mayBeLate: this.#areWide,
    };
  }

  /** Decides when to claim again. */
  answered(row: ClaimLimitedRow, claimed: number, room: Room): void {
    const now = monotonicMs();
    this.#turns = row.turns;
    this.#areWide = row.are_wide;
    this.#answeredAt = now;
    this.#tookMs = row.took_ms;
    this.#isBlocked = row.is_blocked && !this.#isHungry;
    const isContended = row.due_in_ms !== null && row.due_in_ms <= 0;
    this.#contentions = isContended ? this.#contentions + 1 : 0;
    const dueMs = isContended ? backoffMs(contendedBackoff, this.#contentions - 1) : (row.due_in_ms ?? Infinity);
    this.#scanAt = Math.min(now + this.#options.pollInterval(), now + dueMs, this.#expectAt);
    if (claimed > 0 && claimed >= Math.max(1, room.idle)) this.#isHungry = true;
  }

  /**
   * When the jobs of an answer start, on the monotonic clock. The answer says it by the server's clock, which the server read at some time between our
   * question and its answer: a start is neither early nor late, whenever that was. Jobs without a free slot are not held for longer than others.
   */
  starts(
    { starts, took_ms: tookMs }: ClaimLimitedRow,
    jobs: readonly Job[],
    room: Room,
    askedAt: number,
  ): Map<string, JobStart> {
    const startById = new Map<string, JobStart>();
    if (starts === null) return startById;
    const now = monotonicMs();
    const idle = Math.max(1, room.idle);
    const rows: readonly StartRow[] = JSON.parse(starts);
    for (const [before, count, firstMs, stepMs, slackMs, lateMs] of rows) {
      let start: JobStart | undefined;
      for (let nth = 0; nth < count; nth++) {
        // Those that start alike share an object.
        if (!start || stepMs > 0 || before + nth === idle) {
          const afterMs = firstMs + nth * stepMs;
          const intendedUntil = askedAt + afterMs + slackMs;
          const latestAt = intendedUntil + lateMs;
          const isAhead = before + nth >= idle;
          start = {
            at: now + afterMs - tookMs,
            intendedUntil,
            latestAt: isAhead ? Math.min(latestAt, now + maxHoldMs) : latestAt,
          };
        }
        startById.set(jobs[before + nth]!.id, start);
      }
    }
    if (rows.length > 0) this.#options.lateness.granted(Math.min(...rows.map((row) => row[4])));
    return startById;
  }
}
