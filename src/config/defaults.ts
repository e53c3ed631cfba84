import type { RecoverySettings } from "./recovery-settings.ts";

/** Values that hold when nothing is said; the names are those of `preset.worker`. */
export const defaults = Object.freeze({
  schema: "graphile_worker",
  maxPoolSize: 10,
  concurrentJobs: 1,
  pollInterval: 2_000,
  preparedStatements: true,
  fileExtensions: [".js", ".cjs", ".mjs", ".ts", ".mts"],
  gracefulShutdownAbortTimeout: 5_000,
  useNodeTime: false,
  minResetLockedInterval: 8 * 60_000,
  maxResetLockedInterval: 10 * 60_000,
  getQueueNameBatchDelay: 50,
  localQueue: { size: -1 },
  completeJobBatchDelay: -1,
  failJobBatchDelay: -1,
  interruptedJobRetryDelay: 30_000,
  useNotifications: true,
  timeZone: "UTC",
}) satisfies GraphileConfig.WorkerOptions;

export const localQueueTtl = 5 * 60_000;

export const recoveryDefaults = Object.freeze({
  heartbeatInterval: 30_000,
  sweepInterval: 60_000,
  sweepThreshold: 5 * 60_000,
  recoveryDelay: 30_000,
  resilientSweepThresholdMultiplier: 3,
  resilientJobFlags: ["infrastructure_resilient"],
  maxEventLoopBlock: 60 * 60_000,
  crashGrace: 5_000,
  maxCrashes: 3,
}) satisfies RecoverySettings;
