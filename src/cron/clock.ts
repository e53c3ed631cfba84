import { sleep } from "../util/sleep.ts";

/** Time as the scheduler sees it; tests and simulations bring their own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after `ms`, or as soon as the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

export const systemClock: Clock = { now: () => Date.now(), sleep };

export const msPerMinute = 60_000;

export function floorToMinute(ms: number): number {
  return Math.floor(ms / msPerMinute) * msPerMinute;
}

export function ceilToMinute(ms: number): number {
  return Math.ceil(ms / msPerMinute) * msPerMinute;
}

export function nextMinute(ms: number): number {
  return floorToMinute(ms) + msPerMinute;
}
