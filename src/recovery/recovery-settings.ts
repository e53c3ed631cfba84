/** What recovery needs of the settings; the names are those of the options, times are milliseconds. */
export interface RecoverySettings {
  readonly heartbeatInterval: number;
  readonly sweepInterval: number;
  readonly sweepThreshold: number;
  readonly recoveryDelay: number;
  readonly resilientSweepThresholdMultiplier: number;
  readonly resilientJobFlags: readonly string[];
  readonly maxEventLoopBlock: number;
  readonly crashGrace: number;
  readonly maxCrashes: number;
}

/** What a worker says about itself; `tasks` tells those who ask why a job does not run. */
export interface WorkerMetadata {
  readonly pid: number;
  readonly hostname: string;
  readonly version: string;
  readonly concurrency: number;
  /** The newest migration of ours that it knows. */
  readonly migration: number;
  readonly tasks: readonly string[];
}
