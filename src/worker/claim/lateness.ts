import { horizonMs } from "./pace.ts";
import { StartPace } from "./start-pace.ts";

/** Missed starts in a row after which a task is given more time. */
const patience = 2;
const firstMs = 100;
/** The database grants no more. */
const maxMs = 5_000;
/** How many jobs with a time to start are claimed ahead of free slots at first. */
const firstAhead = 16;
/** How many more are claimed ahead for each one that started in time. */
const growth = 4;
/** How many must start in time for each one that did not: if fewer did before it, none is claimed ahead until they have. */
const penance = 4;
/** Of the time within which a claimed job may start, this part is planned for: a machine can be twice as slow as a moment ago. */
const plannedShare = 0.5;
/** However late starts may be, no more is held than will start within this time. */
const maxHorizonMs = 75;
/** By how much that time grows with each claim until a start is missed. */
const horizonGrowthMs = 3;

/**
 * By how much starts may be later than the slack of their rate allows, for each task. A busy process, or one far from its database, may miss every
 * start of a rate with a short period. The more it missed in a row, the more time it asks for. That costs tokens, so it ends when a start would have
 * been in time without it.
 */
export class Lateness {
  readonly #missesByTask = new Map<number, number>();
  /** How fast this pool starts jobs. */
  readonly pace = new StartPace();
  #ahead = firstAhead;
  /** In time since the last miss. */
  #kept = 0;
  #debt = 0;
  /** What is held ahead should be started within this time. */
  #horizonMs = horizonMs;

  /** The jobs of a claim may start within so many milliseconds after it was asked for. */
  granted(ms: number): void {
    const most = Math.max(horizonMs, Math.min(maxHorizonMs, ms * plannedShare));
    this.#horizonMs = Math.min(most, this.#horizonMs + horizonGrowthMs);
  }

  missed(taskId: number): void {
    this.#missesByTask.set(taskId, (this.#missesByTask.get(taskId) ?? 0) + 1);
  }

  /** A start was in time, and needed no more. */
  keptTime(taskId: number): void {
    this.#missesByTask.delete(taskId);
    if (this.#debt > 0) {
      this.#debt--;
      return;
    }
    this.#kept++;
    this.#ahead += growth;
  }

  /** So many jobs that were claimed ahead of free slots did not start in time. */
  missedAhead(jobs: number): void {
    // As few as at first, and still too many.
    if (this.ahead <= firstAhead) this.#debt = Math.max(0, this.#debt + penance * jobs - this.#kept);
    this.#ahead = Math.max(firstAhead, Math.floor(this.ahead / 2));
    this.#kept = 0;
    this.#horizonMs = horizonMs;
  }

  /** How many may be held ahead of free slots: no more than the pool starts within a moment, and fewer until as many have started in time. */
  get ahead(): number {
    return this.#debt > 0 ? 0 : Math.min(this.#ahead, Math.max(firstAhead, this.pace.within(this.#horizonMs)));
  }

  /** So many are held that it is too early to claim more. */
  isEnough(held: number): boolean {
    return held > Math.max(firstAhead, this.ahead) / 2;
  }

  /** In milliseconds, by the id of the task. */
  get byTask(): Record<string, number> {
    const lates: Record<string, number> = {};
    for (const [taskId, misses] of this.#missesByTask) {
      if (misses >= patience) lates[taskId] = Math.min(maxMs, firstMs * 2 ** (misses - patience));
    }
    return lates;
  }
}
