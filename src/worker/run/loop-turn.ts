import { monotonicMs, setImmediate } from "../../util/timers.ts";

/** How long one turn of the event loop may be spent on starting jobs. */
const maxTurnMs = 2;

/** Jobs that never wait for anything must not keep the event loop: others have timers, and the database has answers. */
export class LoopTurn {
  readonly #onNext: () => void;
  #beganAt: number | undefined;
  #nth = 0;

  /** `onNext` is called in the turn that follows one in which work was asked for. */
  constructor(onNext: () => void) {
    this.#onNext = onNext;
  }

  /** Another number for each turn in which jobs were started. */
  get nth(): number {
    return this.#nth;
  }

  /** False if this turn is used up; what is left is for the next one. */
  mayGoOn(): boolean {
    const now = monotonicMs();
    if (this.#beganAt === undefined) {
      this.#beganAt = now;
      setImmediate(() => {
        this.#beganAt = undefined;
        this.#nth++;
        this.#onNext();
      });
    }
    return now - this.#beganAt < maxTurnMs;
  }
}
