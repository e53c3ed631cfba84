import { performance } from "node:perf_hooks";
import * as timers from "node:timers";

/*
 * The process's timers and clocks, taken once at import. Test runners replace the globals with ones that stand still until a
 * test moves them, and our own waits must go on all the same: a faked hour is no outage. Nothing else in src/ uses the globals
 * (a lint rule sees to it), except for `Date` where the user's clock is meant.
 */

export const { clearInterval, clearTimeout, setImmediate, setInterval } = timers;

/** What is longer, Node takes for 1 ms. */
const longestMs = 2 ** 31 - 1;

/** Waits for 24 days at most. */
export function setTimeout(callback: () => void, ms: number): NodeJS.Timeout {
  return timers.setTimeout(callback, Math.min(ms, longestMs));
}

export const queueMicrotask: (task: () => void) => void = globalThis.queueMicrotask;

/** Monotonic milliseconds: unlike the wall clock, they cannot be set back. */
export const monotonicMs: () => number = performance.now.bind(performance);

/** The same in nanoseconds, with an origin that all threads of the process share. */
export const monotonicNs: () => bigint = process.hrtime.bigint;

/** The machine's wall clock, in milliseconds since 1970, also where a test has moved `Date`. */
export const wallMs: () => number = Date.now;
