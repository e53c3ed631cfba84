/** Milliseconds of the machine's monotonic clock: the same in every process, so times may be compared across them. */
export function now() {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
