import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import { type BeatRow, beat, nameJobs } from "../db/statements/beat.ts";
import { registerWorker } from "../db/statements/register-worker.ts";
import { toError } from "../errors.ts";
import { backoffMs } from "../util/backoff.ts";
import { Pulse } from "../util/pulse.ts";
import { sleep } from "../util/sleep.ts";
import { Line } from "./line.ts";
import type { LoopBoard } from "./loop-board.ts";
import type { RecoverySettings, WorkerMetadata } from "./recovery-settings.ts";

/** What a heart has to tell the worker that it beats for. */
export type HeartNews =
  | { readonly kind: "renewed"; readonly from: string; readonly to: string }
  | { readonly kind: "blocked"; readonly ms: number; readonly jobs: readonly string[] }
  | { readonly kind: "schema"; readonly breaking: number; readonly announced: number }
  | { readonly kind: "trouble"; readonly message: string }
  | { readonly kind: "pooled" };

export interface HeartOptions {
  /** The id under which the worker is registered. */
  readonly workerId: string;
  readonly schema: string;
  readonly metadata: WorkerMetadata;
  readonly settings: Pick<RecoverySettings, "heartbeatInterval" | "maxEventLoopBlock" | "crashGrace">;
}

export interface HeartSurroundings {
  readonly connect: () => Promise<PoolClient>;
  readonly board: LoopBoard;
  readonly tell: (news: HeartNews) => void;
}

interface Block {
  ms: number;
  readonly jobs: readonly string[];
}

/** A block of the event loop that is worth a word. */
const longBlockMs = 5_000;

/** How often to look at the event loop. */
export function lookIntervalMs({ heartbeatInterval, maxEventLoopBlock }: HeartOptions["settings"]): number {
  return Math.max(20, Math.min(1_000, heartbeatInterval / 4, maxEventLoopBlock / 4));
}

/**
 * Gives signs of life for a worker, whatever its event loop does: beats, tries again when a beat fails, and registers anew
 * when the worker was taken for dead. Only when the loop has been blocked for too long does it fall silent.
 */
export class Heart {
  readonly #options: HeartOptions;
  readonly #surroundings: HeartSurroundings;
  readonly #pulse = new Pulse();
  readonly #lookMs: number;
  #workerId: string;
  #metadata: WorkerMetadata;
  #line: Line | undefined;
  #lookedAt = performance.now();
  #awakeSince = this.#lookedAt;
  #block: Block | undefined;
  #isInTrouble = false;
  #schema = { breaking: 0, announced: 0 };

  constructor(options: HeartOptions, surroundings: HeartSurroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#lookMs = lookIntervalMs(options.settings);
    this.#workerId = options.workerId;
    this.#metadata = options.metadata;
  }

  /** From the next beat on, the worker is described by this. */
  describe(metadata: WorkerMetadata): void {
    this.#metadata = metadata;
    this.#pulse.nudge();
  }

  /** Beats until aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { heartbeatInterval, crashGrace } = this.#options.settings;
    const backoff = { minMs: 25, maxMs: Math.max(50, Math.min(1_000, heartbeatInterval, crashGrace / 4)), factor: 2 };
    for (let failures = 0; !signal.aborted; ) {
      try {
        await this.#standStill(signal);
        await this.#beat();
        failures = 0;
        this.#isInTrouble = false;
        await this.#rest(signal);
      } catch (error) {
        this.#close();
        if (!this.#isInTrouble) this.#surroundings.tell({ kind: "trouble", message: toError(error).message });
        this.#isInTrouble = true;
        await sleep(backoffMs(backoff, failures++), signal);
      }
    }
    this.#close();
  }

  async #beat(): Promise<void> {
    const { connect } = this.#surroundings;
    const isNew = this.#line === undefined || this.#line.isLost;
    if (isNew) {
      this.#close();
      this.#line = await Line.open(connect, this.#options.schema, () => this.#pulse.nudge());
    }
    const line = this.#line!;
    // Before the beat: should somebody be burying us right now, this waits for it, and the beat then sees the truth.
    await line.hold(this.#workerId);
    const [row] = await line.run(beat, {
      id: this.#workerId,
      metadata: { ...this.#metadata, ...(this.#block && { blocked: this.#block }) },
    });
    if (!row?.is_known) await this.#renew(line);
    else if (isNew) await line.announce();
    if (row) await this.#examine(line, row);
  }

  /** Others have buried us: what ran under the old id is theirs now, and we go on under a new one. */
  async #renew(line: Line): Promise<void> {
    const from = this.#workerId;
    const to = from.replace(/[^-]*$/, randomBytes(9).toString("hex"));
    await line.run(registerWorker, { id: to, metadata: this.#metadata });
    this.#workerId = to;
    this.#surroundings.tell({ kind: "renewed", from, to });
    await line.hold(to);
    await line.announce();
  }

  async #examine(line: Line, row: BeatRow): Promise<void> {
    if (await line.isBetrayedBy(row.pid)) this.#surroundings.tell({ kind: "pooled" });
    const schema = { breaking: row.breaking ?? 0, announced: row.announced ?? 0 };
    if (schema.breaking > this.#schema.breaking || schema.announced > this.#schema.announced) {
      this.#surroundings.tell({ kind: "schema", ...schema });
    }
    this.#schema = schema;
  }

  /** Until the next beat is due, or the line is lost, or there is something to beat about. */
  async #rest(signal: AbortSignal): Promise<void> {
    const dueAt = performance.now() + this.#options.settings.heartbeatInterval;
    while (!signal.aborted) {
      const restMs = dueAt - performance.now();
      if (restMs <= 0 || this.#line?.isLost || this.#isBlockedTooLong()) return;
      await this.#pulse.wait(Math.min(restMs, this.#lookMs), signal);
      if (await this.#watchLoop()) return;
    }
  }

  /** Falls silent while the event loop is blocked for longer than it may be: the worker is as good as dead. */
  async #standStill(signal: AbortSignal): Promise<void> {
    if (!this.#isBlockedTooLong()) return;
    this.#close();
    while (!signal.aborted && this.#isBlockedTooLong()) await this.#pulse.wait(this.#lookMs, signal);
  }

  /** True when a block has just been noticed, so that others can be told at once. */
  async #watchLoop(): Promise<boolean> {
    const blockedMs = this.#blockedMs();
    const { heartbeatInterval } = this.#options.settings;
    if (blockedMs >= Math.min(longBlockMs, heartbeatInterval)) {
      const isNews = this.#block === undefined;
      this.#block ??= { ms: 0, jobs: await this.#nameJobs() };
      this.#block.ms = Math.round(blockedMs);
      return isNews;
    }
    if (this.#block && blockedMs < this.#lookMs * 2) {
      this.#surroundings.tell({ kind: "blocked", ...this.#block });
      this.#block = undefined;
    }
    return false;
  }

  async #nameJobs(): Promise<string[]> {
    const jobIds = this.#surroundings.board.jobIds();
    const rows = (await this.#line?.run(nameJobs, { jobIds })) ?? [];
    return jobIds.map((id) => `${id} (${rows.find((row) => row.id === id)?.task ?? "unknown"})`);
  }

  #isBlockedTooLong(): boolean {
    return this.#blockedMs() > this.#options.settings.maxEventLoopBlock;
  }

  /** If the whole process stood still, as under SIGSTOP, that was not the loop's doing. */
  #blockedMs(): number {
    const now = performance.now();
    if (now - this.#lookedAt > this.#lookMs + 1_000) this.#awakeSince = now;
    this.#lookedAt = now;
    return Math.min(this.#surroundings.board.sinceTurnMs(), now - this.#awakeSince);
  }

  #close(): void {
    this.#line?.close();
    this.#line = undefined;
  }
}
