import { randomBytes } from "node:crypto";
import type { PoolClient } from "pg";
import type { RecoverySettings } from "../config/recovery-options.ts";
import { type Trouble, troubleOf } from "../db/outage-log.ts";
import { type BeatRow, beat, nameJobs, registerWorker, type SessionRow } from "../db/statements/heartbeat.ts";
import { backoffMs } from "../util/backoff.ts";
import { Pulse } from "../util/pulse.ts";
import { sleep } from "../util/sleep.ts";
import { monotonicMs } from "../util/timers.ts";
import { HeartbeatConnection } from "./heartbeat-connection.ts";
import type { LoopBoard } from "./loop-board.ts";
import { LoopWatch } from "./loop-watch.ts";
import { Witness } from "./witness.ts";
import type { WorkerMetadata } from "./worker-metadata.ts";

/** What a heart has to tell the worker that it beats for. */
export type HeartNews =
  | { readonly kind: "renewed"; readonly from: string; readonly to: string }
  | { readonly kind: "blocked"; readonly ms: number; readonly jobs: readonly string[] }
  | { readonly kind: "schema"; readonly breaking: number; readonly announced: number }
  | ({ readonly kind: "trouble" } & Trouble)
  | { readonly kind: "well" }
  | { readonly kind: "overdue" }
  | { readonly kind: "resumed" }
  | { readonly kind: "pooled" };

export type HeartSettings = Pick<
  RecoverySettings,
  "heartbeatInterval" | "sweepThreshold" | "maxEventLoopBlock" | "crashGrace"
>;

export interface HeartOptions {
  /** The id under which the worker is registered. */
  readonly workerId: string;
  readonly schema: string;
  readonly metadata: WorkerMetadata;
  readonly settings: HeartSettings;
}

export interface HeartSurroundings {
  readonly connect: () => Promise<PoolClient>;
  readonly board: LoopBoard;
  readonly tell: (news: HeartNews) => void;
}

/** How long a heartbeat may take; a connection that is dead without a word must not keep it for longer. */
export function beatPatienceMs({ heartbeatInterval }: HeartSettings): number {
  return Math.max(1_000, Math.min(5_000, heartbeatInterval));
}

/** For how long after a heartbeat a worker may claim and start jobs: until well before others may take them. */
export function workMs({ heartbeatInterval, sweepThreshold }: HeartSettings): number {
  return sweepThreshold - Math.min(sweepThreshold / 4, (sweepThreshold - heartbeatInterval) / 2);
}

/**
 * Sends heartbeats for a worker, whatever its event loop does: tries again when one fails, and registers anew when the worker was
 * declared dead. Only when the loop has been blocked for too long does it fall silent. It also says until when the worker may work.
 */
export class Heart {
  readonly #options: HeartOptions;
  readonly #surroundings: HeartSurroundings;
  readonly #pulse = new Pulse();
  readonly #loop: LoopWatch;
  #workerId: string;
  /** The worker does not yet know that it has another id. */
  #isRenewing = false;
  #metadata: WorkerMetadata;
  #connection: HeartbeatConnection | undefined;
  #former: SessionRow | undefined;
  /** The line was lost, and no heartbeat has arrived over the new one yet. */
  #isOnNewLine = false;
  /** The worker and the key that others know. */
  #told = "";
  #isOverdue = false;
  /** That a pooler keeps the connection from its lock was reported. */
  #isPooled = false;
  /** The longest delay of the event loop that no heartbeat has reported yet. A block that is not over is reported on its own. */
  #unreportedDelayMs = 0;
  #troubledAt: number | undefined;
  readonly #witness: Witness;
  #isDoubted = false;
  #schema = { breaking: 0, announced: 0 };

  constructor(options: HeartOptions, surroundings: HeartSurroundings) {
    this.#options = options;
    this.#surroundings = surroundings;
    this.#loop = new LoopWatch({
      settings: options.settings,
      board: surroundings.board,
      nameJobs: () => this.#nameJobs(),
      onUnblocked: (block) => surroundings.tell({ kind: "blocked", ...block }),
    });
    this.#workerId = options.workerId;
    this.#metadata = options.metadata;
    this.#witness = new Witness(options.settings);
  }

  /** The worker is described by this from now on; a beat at once tells the others. */
  describe(metadata: WorkerMetadata): void {
    this.#metadata = metadata;
    this.doubt();
  }

  /** Beats at once. */
  doubt(): void {
    this.#isDoubted = true;
    this.#pulse.nudge();
  }

  /** The worker goes on under its new id, so its heartbeats are good again. */
  goOn(workerId: string): void {
    if (workerId === this.#workerId) this.#isRenewing = false;
    this.doubt();
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
        await this.#rest(signal);
      } catch (error) {
        // Others notice the loss of the lock, and wait for the grace period.
        if (this.#connection?.key) this.#surroundings.board.limit(crashGrace / 2);
        this.#close();
        this.#noteOverdue();
        if (this.#troubledAt === undefined) this.#surroundings.tell({ kind: "trouble", ...troubleOf(error) });
        this.#troubledAt ??= monotonicMs();
        await sleep(backoffMs(backoff, failures++), signal);
      }
    }
    this.#close();
  }

  async #beat(): Promise<void> {
    const connection = await this.#connect();
    this.#isDoubted = false;
    const sentAt = monotonicMs();
    const told = `${this.#workerId} ${connection.key}`;
    this.#unreportedDelayMs = Math.max(this.#unreportedDelayMs, this.#surroundings.board.takeDelayMs());
    const loopDelayMs = Math.round(this.#unreportedDelayMs);
    const { block } = this.#loop;
    const [row] = await connection.run(beat, {
      id: this.#workerId,
      key: told === this.#told ? null : connection.key,
      metadata: { ...this.#metadata, loopDelayMs, ...(block && { blocked: block }) },
    });
    if (!row?.is_known) await this.#renew(connection);
    else {
      this.#told = told;
      this.#unreportedDelayMs = 0;
      if (!this.#isRenewing) this.#allow(sentAt);
    }
    if (row) this.#recover(row.now_ms);
    if (row) await this.#examine(connection, row);
  }

  /** A heartbeat has arrived. */
  #recover(atMs: number): void {
    const { board, tell } = this.#surroundings;
    const troubleMs = this.#troubledAt === undefined ? 0 : monotonicMs() - this.#troubledAt;
    board.witness(this.#witness.note(atMs, troubleMs, this.#isOnNewLine), atMs, this.#witness.lineSince);
    this.#isOnNewLine = false;
    if (this.#troubledAt !== undefined) tell({ kind: "well" });
    this.#troubledAt = undefined;
  }

  async #connect(): Promise<HeartbeatConnection> {
    if (this.#connection && !this.#connection.isLost) return this.#connection;
    const { settings, schema } = this.#options;
    if (this.#connection?.key) this.#surroundings.board.limit(settings.crashGrace / 2);
    this.#close();
    const statementMs = beatPatienceMs(settings);
    this.#connection = await HeartbeatConnection.open({
      connect: this.#surroundings.connect,
      schema,
      onLost: () => this.#pulse.nudge(),
      statementMs,
      // By then we have noticed ourselves, and have another connection.
      silenceMs: 2 * (settings.heartbeatInterval + statementMs),
      former: this.#former,
    });
    this.#former = undefined;
    return this.#connection;
  }

  #allow(sentAt: number): void {
    const { board, tell } = this.#surroundings;
    const mayWork = board.mayWork;
    board.allow(sentAt, workMs(this.#options.settings));
    this.#isOverdue = false;
    if (!mayWork) tell({ kind: "resumed" });
  }

  #noteOverdue(): void {
    const { board, tell } = this.#surroundings;
    if (this.#isOverdue || board.mayWork) return;
    this.#isOverdue = true;
    tell({ kind: "overdue" });
  }

  /** Others have buried us: what ran under the old id is theirs now, and we go on under a new one. */
  async #renew(connection: HeartbeatConnection): Promise<void> {
    const from = this.#workerId;
    const to = from.replace(/[^-]*$/, randomBytes(9).toString("hex"));
    // Until the worker has taken the new id, it must not start what it holds under the old one.
    this.#surroundings.board.limit(0);
    await connection.run(registerWorker, { id: to, metadata: this.#metadata });
    this.#workerId = to;
    this.#isRenewing = true;
    this.#surroundings.tell({ kind: "renewed", from, to });
  }

  async #examine(connection: HeartbeatConnection, row: BeatRow): Promise<void> {
    await connection.checkServer(row.pid, this.#workerId);
    if (connection.key === null && !this.#isPooled) this.#surroundings.tell({ kind: "pooled" });
    this.#isPooled ||= connection.key === null;
    const schema = { breaking: row.breaking ?? 0, announced: row.announced ?? 0 };
    if (schema.breaking > this.#schema.breaking || schema.announced > this.#schema.announced) {
      this.#surroundings.tell({ kind: "schema", ...schema });
    }
    this.#schema = schema;
  }

  /** Until the next beat is due, or the connection is lost, or there is something to beat about. */
  async #rest(signal: AbortSignal): Promise<void> {
    const dueAt = monotonicMs() + this.#options.settings.heartbeatInterval;
    while (!signal.aborted) {
      const restMs = dueAt - monotonicMs();
      if (restMs <= 0 || this.#isDoubted || this.#connection?.isLost || this.#loop.isBlockedTooLong()) return;
      await this.#pulse.wait(Math.min(restMs, this.#loop.lookMs), signal);
      if (await this.#loop.look()) return;
    }
  }

  /** Falls silent while the event loop is blocked for longer than it may be: the worker is as good as dead. */
  async #standStill(signal: AbortSignal): Promise<void> {
    if (!this.#loop.isBlockedTooLong()) return;
    this.#close();
    while (!signal.aborted && this.#loop.isBlockedTooLong()) await this.#pulse.wait(this.#loop.lookMs, signal);
  }

  async #nameJobs(): Promise<string[]> {
    const jobIds = this.#surroundings.board.jobIds();
    const rows = (await this.#connection?.run(nameJobs, { jobIds })) ?? [];
    return jobIds.map((id) => `${id} (${rows.find((row) => row.id === id)?.task ?? "unknown"})`);
  }

  #close(): void {
    if (!this.#connection) return;
    this.#former = this.#connection.session ?? this.#former;
    this.#isOnNewLine = true;
    this.#connection.close();
    this.#connection = undefined;
  }
}
