import type { RecoverySettings } from "../config/recovery-options.ts";
import { monotonicMs } from "../util/timers.ts";
import type { LoopBoard } from "./loop-board.ts";

type LoopWatchSettings = Pick<RecoverySettings, "heartbeatInterval" | "maxEventLoopBlock">;

/** How long the event loop has been blocked, and the jobs that ran when it was noticed. */
export interface LoopBlock {
  ms: number;
  readonly jobs: readonly string[];
}

export interface LoopWatchOptions {
  readonly settings: LoopWatchSettings;
  readonly board: LoopBoard;
  /** Describes the jobs that run now. */
  readonly nameJobs: () => Promise<readonly string[]>;
  /** The event loop turns again. */
  readonly onUnblocked: (block: LoopBlock) => void;
}

/** A block of the event loop that is worth a word. */
const longBlockMs = 5_000;

/** How often to look at the event loop. */
export function lookIntervalMs({ heartbeatInterval, maxEventLoopBlock }: LoopWatchSettings): number {
  return Math.max(20, Math.min(1_000, heartbeatInterval / 4, maxEventLoopBlock / 4));
}

/** Finds out from another thread whether a worker's event loop turns. */
export class LoopWatch {
  readonly lookMs: number;
  readonly #options: LoopWatchOptions;
  #lookedAt = monotonicMs();
  #awakeSince = this.#lookedAt;
  #block: LoopBlock | undefined;

  constructor(options: LoopWatchOptions) {
    this.#options = options;
    this.lookMs = lookIntervalMs(options.settings);
  }

  /** Set while the loop is blocked for longer than it usually is. */
  get block(): LoopBlock | undefined {
    return this.#block;
  }

  isBlockedTooLong(): boolean {
    return this.#blockedMs() > this.#options.settings.maxEventLoopBlock;
  }

  /** True when a block has just been noticed, so that others can be told at once. */
  async look(): Promise<boolean> {
    const { settings, nameJobs, onUnblocked } = this.#options;
    const blockedMs = this.#blockedMs();
    if (blockedMs >= Math.min(longBlockMs, settings.heartbeatInterval)) {
      const isNews = this.#block === undefined;
      this.#block ??= { ms: 0, jobs: await nameJobs() };
      this.#block.ms = Math.round(blockedMs);
      return isNews;
    }
    if (this.#block && blockedMs < this.lookMs * 2) {
      onUnblocked(this.#block);
      this.#block = undefined;
    }
    return false;
  }

  /** If the whole process stood still, as under SIGSTOP, that was not the loop's doing. */
  #blockedMs(): number {
    const now = monotonicMs();
    if (now - this.#lookedAt > this.lookMs + 1_000) this.#awakeSince = now;
    this.#lookedAt = now;
    return Math.min(this.#options.board.sinceTurnMs(), now - this.#awakeSince);
  }
}
