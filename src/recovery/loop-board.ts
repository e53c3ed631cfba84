import type { Emit } from "../events.ts";
import type { Worker } from "../worker.ts";

const followedNames = new Set<string>(["job:start", "job:success", "job:error"]);

const turnedAt = 0;
const latest = 1;
const firstSlot = 2;

/**
 * Memory that a worker shares with the thread that beats for it: when the event loop last turned, and which jobs run. The
 * thread can read it even while the loop stands still.
 */
export class LoopBoard {
  readonly memory: SharedArrayBuffer;
  readonly #cells: BigInt64Array;

  constructor(memory: SharedArrayBuffer) {
    this.memory = memory;
    this.#cells = new BigInt64Array(memory);
  }

  static forSlots(slots: number): LoopBoard {
    const board = new LoopBoard(new SharedArrayBuffer((firstSlot + slots) * BigInt64Array.BYTES_PER_ELEMENT));
    board.turn();
    return board;
  }

  /** To be called by the event loop at every turn that matters. */
  turn(): void {
    Atomics.store(this.#cells, turnedAt, process.hrtime.bigint());
  }

  /** How long ago the event loop turned. */
  sinceTurnMs(): number {
    return Number(process.hrtime.bigint() - Atomics.load(this.#cells, turnedAt)) / 1e6;
  }

  /** The jobs that run, the one that started last in front: it is the most likely to stand in the way of the others. */
  jobIds(): string[] {
    const cells = [...this.#cells.subarray(firstSlot)];
    const [last] = cells.splice(Number(Atomics.load(this.#cells, latest)), 1);
    return [last ?? 0n, ...cells].filter((id) => id !== 0n).map(String);
  }

  /** Notes which jobs run, on the way of the events that tell of it. */
  follow(emit: Emit): Emit {
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
    const followed: Emit = (name, payload) => {
      if (name === "job:start" && "worker" in payload && "job" in payload && payload.job) {
        const slot = slotOf(payload.worker);
        this.#cells[firstSlot + slot] = BigInt(payload.job.id);
        this.#cells[latest] = BigInt(slot);
      } else if ((name === "job:success" || name === "job:error") && "worker" in payload) {
        this.#cells[firstSlot + slotOf(payload.worker)] = 0n;
      }
      emit(name, payload);
    };
    followed.heard = (name) => followedNames.has(name) || emit.heard(name);
    return followed;
  }
}
