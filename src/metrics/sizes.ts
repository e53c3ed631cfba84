/** The largest batch is 2,000 jobs for a settle; a claim may bring more with many slots. */
export const sizeBounds = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/** How often batches of each size were seen. */
export class Sizes {
  readonly counts = new Float64Array(sizeBounds.length + 1);
  count = 0;
  sum = 0;

  observe(size: number): void {
    const index = sizeBounds.findIndex((bound) => size <= bound);
    this.counts[index < 0 ? sizeBounds.length : index]!++;
    this.count++;
    this.sum += size;
  }
}
