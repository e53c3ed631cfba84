import { binCount, binOf } from "../util/log-bins.ts";

/** How often times of each length were seen. */
export class Histogram {
  readonly bins = new Float64Array(binCount);
  count = 0;
  sumMs = 0;

  observe(ms: number): void {
    const time = Math.max(ms, 0);
    this.bins[binOf(time)]!++;
    this.count++;
    this.sumMs += time;
  }
}
