import { clearTimeout, setTimeout } from "./timers.ts";

/** A timer that is set for longer ends at once. */
const longestMs = 2 ** 31 - 1;

/** One wait with three ends: time, a nudge, an abort. A nudge that comes while there is no wait is remembered. */
export class Pulse {
  #nudged = false;
  #wake: (() => void) | undefined;

  nudge(): void {
    this.#nudged = true;
    this.#wake?.();
  }

  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#nudged && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", wake);
          this.#wake = undefined;
          resolve();
        };
        const timer = setTimeout(wake, Math.min(ms, longestMs));
        signal.addEventListener("abort", wake, { once: true });
        this.#wake = wake;
      });
    }
    this.#nudged = false;
  }
}
