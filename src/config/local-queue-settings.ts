import { ConfigError } from "../errors.ts";
import { aDelay, aNumber, anInterval, anObject, checkAll } from "./check.ts";
import { localQueueTtl } from "./defaults.ts";
import type { LocalQueueOptions, RefetchDelayOptions } from "./preset-options.ts";

/** `size` below 1 means that nothing was asked for: the pool decides for itself. */
export interface LocalQueueSettings {
  readonly size: number;
  readonly ttl: number;
  readonly refetchDelay: Readonly<Required<RefetchDelayOptions>> | undefined;
}

const checks = { size: aNumber, ttl: anInterval, refetchDelay: anObject };
const refetchDelayChecks = { durationMs: aDelay, threshold: aDelay, maxAbortThreshold: aDelay };

export function resolveLocalQueue(options: LocalQueueOptions, pollInterval: number): LocalQueueSettings {
  checkAll(options, checks, "localQueue.");
  const { size, ttl = localQueueTtl, refetchDelay } = options;
  return Object.freeze({
    size,
    ttl,
    refetchDelay: refetchDelay && resolveRefetchDelay(refetchDelay, size, pollInterval),
  });
}

function resolveRefetchDelay(
  options: RefetchDelayOptions,
  size: number,
  pollInterval: number,
): Readonly<Required<RefetchDelayOptions>> {
  checkAll(options, refetchDelayChecks, "localQueue.refetchDelay.");
  const { durationMs, threshold = 0, maxAbortThreshold = 5 * size } = options;
  if (durationMs > pollInterval) {
    throw new ConfigError(
      `Invalid configuration; 'preset.worker.localQueue.refetchDelay.durationMs' (${durationMs}) must not be larger than ` +
        `'preset.worker.pollInterval' (${pollInterval})`,
    );
  }
  return Object.freeze({ durationMs, threshold, maxAbortThreshold });
}
