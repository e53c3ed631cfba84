import type { EventHandlers } from "../emit.ts";
import type { Job } from "../job.ts";
import { monotonicMs, monotonicNs } from "../util/timers.ts";
import type { Worker } from "../worker.ts";

const turnedAt = 0;
const latest = 1;
const deadline = 2;
const steadySince = 3;
const beatenAt = 4;
const latestBy = 5;
const lineSince = 6;
const firstSlot = 7;

/** The last heartbeat arrived at `atMs`, and by then they had arrived without a break for `forMs`, and over the same line for `lineForMs`. */
export interface Witnessed {
  readonly atMs: number;
  readonly forMs: number;
  readonly lineForMs: number;
}

/** Milliseconds of the monotonic clock that all threads share. */
const sharedOffsetMs = Number(monotonicNs()) / 1e6 - monotonicMs();
const sharedMs = (): number => monotonicMs() + sharedOffsetMs;

/**
 * Memory that a worker shares with its heartbeat thread: when the event loop last turned and how late it was, which jobs run, until when the worker may
 * claim and start jobs, and what its heartbeats have witnessed. Each can read it even while the other stands still.
 */
export class LoopBoard {
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;
  readonly #times: Float64Array;

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
    this.#times = new Float64Array(memory);
  }

  static forSlots(slots: number): LoopBoard {
    const board = new LoopBoard(new SharedArrayBuffer((firstSlot + slots) * BigInt64Array.BYTES_PER_ELEMENT));
    board.turn();
    board.allow(0, Number.POSITIVE_INFINITY); // until it is registered, and others know of it
    return board;
  }

  /** To be called by the event loop at every turn that matters; with the time that should have passed since the last one, it notes how late it is. */
  turn(afterMs = Number.POSITIVE_INFINITY): void {
    const lateNs = (this.sinceTurnMs() - afterMs) * 1e6;
    if (lateNs > Atomics.load(this.#cells, latestBy)) Atomics.store(this.#cells, latestBy, BigInt(Math.round(lateNs)));
    Atomics.store(this.#cells, turnedAt, monotonicNs());
  }

  /** How late the event loop has been at most since this was last asked. */
  takeDelayMs(): number {
    return Number(Atomics.exchange(this.#cells, latestBy, 0n)) / 1e6;
  }

  /** How long ago the event loop turned. */
  sinceTurnMs(): number {
    return Number(monotonicNs() - Atomics.load(this.#cells, turnedAt)) / 1e6;
  }

  /** Whether the last heartbeat is recent enough: no other worker takes our jobs yet. */
  get mayWork(): boolean {
    return sharedMs() < this.#times[deadline]!;
  }

  /** A heartbeat that was sent at `sentAt` has come through, and is good for so long. */
  allow(sentAt: number, forMs: number): void {
    this.#times[deadline] = sentAt + sharedOffsetMs + forMs;
  }

  /** Others may take our jobs in this many milliseconds, or earlier. */
  limit(withinMs: number): void {
    this.#times[deadline] = Math.min(this.#times[deadline]!, sharedMs() + withinMs);
  }

  /**
   * A heartbeat arrived at `atMs` by the server's clock, the last of those that have arrived without a break since `sinceMs`; our line has not been
   * lost since `lineSinceMs`.
   */
  witness(sinceMs: number, atMs: number, lineSinceMs: number): void {
    this.#times[steadySince] = sinceMs;
    this.#times[lineSince] = lineSinceMs;
    this.#times[beatenAt] = atMs;
  }

  /** What the heartbeats have witnessed, by the server's clock. */
  get witnessed(): Witnessed {
    const atMs = this.#times[beatenAt]!;
    return { atMs, forMs: atMs - this.#times[steadySince]!, lineForMs: atMs - this.#times[lineSince]! };
  }

  /** The jobs that run, the one that started last in front: it is the most likely to stand in the way of the others. */
  jobIds(): string[] {
    const cells = [...this.#cells.subarray(firstSlot)];
    const [last] = cells.splice(Number(Atomics.load(this.#cells, latest)), 1);
    return [last ?? 0n, ...cells].filter((id) => id !== 0n).map(String);
  }

  /** Notes which jobs run. */
  handlers(): EventHandlers {
    const slots = this.#cells.length - firstSlot;
    const slotByWorker = new WeakMap<Worker, number>();
    let known = 0;
    const slotOf = (worker: Worker): number => {
      let slot = slotByWorker.get(worker);
      if (slot === undefined) {
        slot = known++ % slots;
        slotByWorker.set(worker, slot);
      }
      return slot;
    };
    const vacate = ({ worker }: { readonly worker: Worker }): void => {
      this.#cells[firstSlot + slotOf(worker)] = 0n;
    };
    // Told of late: another job may run there by now.
    const vacateLate = ({ worker, job }: { readonly worker: Worker; readonly job: Job }): void => {
      const cell = firstSlot + slotOf(worker);
      if (this.#cells[cell] === BigInt(job.id)) this.#cells[cell] = 0n;
    };
    return {
      "job:start": ({ worker, job }) => {
        const slot = slotOf(worker);
        this.#cells[firstSlot + slot] = BigInt(job.id);
        this.#cells[latest] = BigInt(slot);
      },
      "job:success": vacate,
      "job:error": vacateLate,
      "job:snoozed": vacateLate,
      "job:cancelled": vacateLate,
    };
  }
}
