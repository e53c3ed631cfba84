import type { Pool } from "pg";
import type { EventHandlers } from "../emit.ts";
import type { Logger } from "../logger.ts";
import type { WorkerPool } from "../worker.ts";
import type { LifecycleHooks } from "./contexts.ts";

/** A pool as its meter sees it. */
export interface MeteredPool {
  readonly workerPool: () => WorkerPool;
  readonly schema: string;
  readonly preparedStatements: boolean;
  readonly pollInterval: number;
  readonly logger: Logger;
  /** Undefined if jobs run on a single client. */
  readonly pgPool: Pool | undefined;
  /** When the claimer's loop last turned, on the monotonic clock. */
  readonly turnedAt: () => number;
}

/** Measures pools: what the option `metrics` takes, and `makeMetrics` of `hathi/metrics` gives. */
export interface Meter {
  /** What to call along a job's way. */
  readonly hooks: LifecycleHooks;
  /** Takes a pool under observation; its events are handed to the handlers. */
  attach(pool: MeteredPool): EventHandlers;
  /** Jobs were added through this library in so much time, or none because of an error. */
  added(task: string, count: number, durationMs?: number, error?: unknown): void;
}
