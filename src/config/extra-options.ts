import type { HooksInput } from "../hook-registry.ts";

/** How jobs of a dead worker are found and given back. */
export interface RecoveryOptions {
  /** Milliseconds between signs of life. */
  heartbeatInterval?: number;
  /** Milliseconds between looks for dead workers. */
  sweepInterval?: number;
  /** Milliseconds without a sign of life after which a worker counts as dead. */
  sweepThreshold?: number;
  /** Milliseconds a recovered job waits before it may run again. */
  recoveryDelay?: number;
  /** A worker that holds a resilient job is given this many times `sweepThreshold`. */
  resilientSweepThresholdMultiplier?: number;
  /** Flags that make a job resilient. */
  resilientJobFlags?: string[];
  /** Milliseconds a process's event loop may be blocked before its worker counts as dead. */
  maxEventLoopBlock?: number;
  /** Milliseconds from the loss of a dead process's connection until its jobs may be given back. */
  crashGrace?: number;
  /** A job that was running in this many deaths of its worker is failed for good. */
  maxCrashes?: number;
}

/** What Hathi offers beyond Graphile Worker; each key also stands at `preset.worker`. */
export interface ExtraOptions extends RecoveryOptions {
  /** Milliseconds a graceful shutdown waits for running jobs before they are given back; no limit, if left out. */
  shutdownGracePeriod?: number;
  /** Milliseconds an interrupted job waits before it may run again. */
  interruptedJobRetryDelay?: number;
  /** False: no LISTEN, work is found by polling only. */
  useNotifications?: boolean;
  /** A direct line to the database for LISTEN, past a pooler that would swallow it. */
  listenConnectionString?: string;
  /** If given, only jobs with at least one of these flags are run. */
  acceptedFlags?: string[];
  /** The time zone of crontab entries that name none; an IANA name such as `Europe/Berlin`. */
  timeZone?: string;
  /** Recovers the jobs of workers that died; `true`, or settings (which switch it on). */
  recovery?: boolean | RecoveryOptions;
  /** Milliseconds a breaking migration waits for workers that are too old for it; four hours, if left out. */
  maxMigrationWaitTime?: number;
  /** Your own state, handed to every task as `helpers.context`. */
  context?: GraphileWorker.Context;
  /** Functions to call along a job's way: by name, as a registry (`makeHooks`), as plugins, or an array of these. */
  hooks?: HooksInput;
}
