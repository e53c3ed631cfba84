/** What a worker says about itself; `tasks` tells those who ask why a job does not run. */
export interface WorkerMetadata {
  readonly pid: number;
  readonly hostname: string;
  /** Of this package. */
  readonly version: string;
  /** Of the program that it runs in. */
  readonly appVersion?: string;
  readonly concurrency: number;
  /** It was asked to stop, so its death is no job's fault. */
  readonly stopping?: true;
  /** It only hands jobs on to another system, so none of them can have killed it. */
  readonly forwards?: true;
  /** The newest migration of ours that it knows. */
  readonly migration: number;
  readonly tasks: readonly string[];
}
