import { ConfigError } from "../errors.ts";
import { aDelay, aGroup, aNumber, anAmountOrInfinity, anIntervalOrNever } from "./kinds.ts";
import { type Given, option, type Resolved } from "./option.ts";

export const refetchDelayTable = {
  /** Milliseconds to hold back, give or take a half; at most `pollInterval`. */
  durationMs: option(aDelay, { default: 0 }),
  /** A claim that found more jobs than this is not held back. */
  threshold: option(aDelay, { default: 0 }),
  /** New jobs, at most, that end the delay early; `Infinity` for none; five times the local queue's size, if left out. */
  maxAbortThreshold: option(anAmountOrInfinity),
};

/** When to hold back the next claim after one that found little. */
export interface RefetchDelayOptions extends Given<typeof refetchDelayTable> {
  durationMs: number;
}

export const localQueueTable = {
  /** Jobs to claim at once, at most; below 1 the pool decides for itself. */
  size: option(aNumber, { default: -1 }),
  /** Milliseconds a claimed job may wait before it is returned; `Infinity` for no limit. */
  ttl: option(anIntervalOrNever, { default: 5 * 60_000 }),
  /** Holds back the next claim after one that found little. */
  refetchDelay: option(aGroup<typeof refetchDelayTable, RefetchDelayOptions>("RefetchDelayOptions", refetchDelayTable)),
};

/** How far ahead a pool claims. */
export interface LocalQueueOptions extends Given<typeof localQueueTable> {
  size: number;
}

type Filled<T> = { readonly [Key in keyof T]: NonNullable<T[Key]> };

/** The local queue's settings, with the gaps filled that depend on its size. */
export interface LocalQueueSettings {
  readonly size: number;
  readonly ttl: number;
  readonly refetchDelay?: Filled<Resolved<typeof refetchDelayTable>> | undefined;
}

export function resolveLocalQueue(
  { size, ttl, refetchDelay }: Resolved<typeof localQueueTable>,
  pollInterval: number,
): LocalQueueSettings {
  if (refetchDelay === undefined || size < 1) return Object.freeze({ size, ttl, refetchDelay: undefined });
  const { durationMs, threshold, maxAbortThreshold = 5 * size } = refetchDelay;
  if (durationMs > pollInterval) {
    throw new ConfigError(
      `Invalid configuration; 'preset.worker.localQueue.refetchDelay.durationMs' (${durationMs}) must not be larger than ` +
        `'preset.worker.pollInterval' (${pollInterval})`,
    );
  }
  return Object.freeze({ size, ttl, refetchDelay: Object.freeze({ durationMs, threshold, maxAbortThreshold }) });
}
