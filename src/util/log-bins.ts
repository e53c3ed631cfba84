/** Times are counted in bins whose upper ends grow by √2, from 1 ms to 3.3 hours; the last bin takes everything beyond. */
export const binCount = 49;

/** The bin that a time belongs to: the first whose upper end is not below it. */
export function binOf(ms: number): number {
  if (!(ms > 1)) return 0;
  return Math.min(binCount - 1, Math.ceil(2 * Math.log2(ms) - 1e-9));
}

/** The longest time that belongs to the bin; Infinity for the last. */
export function upperMs(bin: number): number {
  return bin >= binCount - 1 ? Number.POSITIVE_INFINITY : 2 ** (bin / 2);
}

/**
 * The time that this share (0 to 1) of the counted ones did not exceed; undefined if none was counted. From 1 ms to the last bin it is off by
 * less than 19 %: it is the middle of a bin.
 */
export function quantileMs(bins: readonly number[], share: number): number | undefined {
  const total = bins.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = share * total;
  let below = 0;
  for (const [bin, count] of bins.entries()) {
    below += count;
    if (count > 0 && below >= rank) return middleMs(bin);
  }
  return middleMs(bins.length - 1);
}

function middleMs(bin: number): number {
  // The last bin has no end: its beginning is all that is known.
  return bin >= binCount - 1 ? upperMs(binCount - 2) : upperMs(bin) / 2 ** 0.25;
}
