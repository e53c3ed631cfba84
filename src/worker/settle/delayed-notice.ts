import { clearTimeout, setTimeout } from "../../util/timers.ts";

/** Long enough for us to take up again ourselves what we let go, which is what happens most of the time. */
const restMs = 10;

/** Tells other pools, a moment later, of what is left of what we let go. */
export class LateNews {
  /** Tells now; undefined if there is nothing to tell. */
  readonly #tell: () => Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #telling: Promise<void> = Promise.resolve();

  constructor(tell: () => Promise<unknown> | undefined) {
    this.#tell = tell;
  }

  /** There may be something to tell. */
  plan(): void {
    this.#timer ??= setTimeout(() => this.#tellNow(), restMs);
  }

  /** There is nothing left to tell. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Tells of what is left, at once. */
  async close(): Promise<void> {
    this.#tellNow();
    await this.#telling;
  }

  #tellNow(): void {
    this.cancel();
    const told = this.#tell()?.then(
      () => undefined,
      () => undefined, // polling finds it
    );
    if (told) this.#telling = Promise.all([this.#telling, told]).then(() => undefined);
  }
}
