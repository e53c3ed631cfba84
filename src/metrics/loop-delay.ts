import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import type { Service } from "../util/service.ts";
import { monotonicMs } from "../util/timers.ts";

const resolutionMs = 20;
const windowMs = 60_000;

/** How late timers fire in this process, over the last minute or two. */
export class LoopDelay implements Service {
  #histogram: IntervalHistogram | undefined;
  #since = 0;

  start(): void {
    if (this.#histogram) return;
    this.#histogram = monitorEventLoopDelay({ resolution: resolutionMs });
    this.#histogram.enable();
    this.#since = monotonicMs();
  }

  /** Seconds by percentile; empty before the first timer fired. */
  read(): { percentile: string; seconds: number }[] {
    const histogram = this.#histogram;
    if (!histogram || histogram.count === 0) return [];
    const percentiles = [50, 99, 100].map((percentile) => ({
      percentile: String(percentile),
      seconds: Math.max(0, histogram.percentile(percentile) / 1e9 - resolutionMs / 1000),
    }));
    if (monotonicMs() - this.#since > windowMs) {
      histogram.reset();
      this.#since = monotonicMs();
    }
    return percentiles;
  }

  stop(): void {
    this.#histogram?.disable();
    this.#histogram = undefined;
  }
}
