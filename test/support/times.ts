/**
 * How many random or repeated cases a test tries: this many in the suite, and `TEST_FACTOR` times as many for whoever hunts. The suite has to
 * stay short enough to be run.
 */
export function times(count: number): number {
  return Math.ceil(count * Number(process.env.TEST_FACTOR ?? 1));
}

/** Seeds from 1 on, for `test.each`. */
export function seeds(count: number): number[] {
  return Array.from({ length: times(count) }, (_, index) => index + 1);
}
