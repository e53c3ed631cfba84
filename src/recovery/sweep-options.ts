import type { RecoverySettings } from "../config/recovery-options.ts";
import type { HookDetails } from "../hooks/lifecycle.ts";
import type { RecoveryDecision } from "../hooks/results.ts";
import type { KeepRules } from "../kept-history.ts";

/** Where others may have a say, or just want to know. Without `jobRecovery` jobs are recovered in one statement. */
export interface SweepHooks {
  /** Decides what becomes of a job; must not throw, nor take long. */
  readonly jobRecovery?: ((event: HookDetails<"jobRecovery">) => Promise<RecoveryDecision>) | undefined;
  readonly jobInterrupted?: ((event: HookDetails<"jobInterrupted">) => void) | undefined;
  readonly workerRecovered?: ((event: HookDetails<"workerRecovered">) => void) | undefined;
}

export interface SweepOptions {
  /** Who sweeps. */
  readonly sweeperId: string;
  readonly settings: Pick<
    RecoverySettings,
    | "sweepThreshold"
    | "recoveryDelay"
    | "resilientSweepThresholdMultiplier"
    | "resilientJobFlags"
    | "crashGrace"
    | "maxCrashes"
    | "recoveryBackoff"
  >;
  /** Also search for locks without a known owner; costs a scan of all jobs. */
  readonly withOrphans: boolean;
  /** For how long the sweeper's own heartbeats have arrived without a break, at this time of the server; null if it sends none. */
  readonly witnessedMs: (nowMs: number) => number | null;
  /** Find out, and change nothing. */
  readonly dryRun: boolean;
  readonly hooks: SweepHooks;
  /** What is kept of attempts that count as failed. */
  readonly keepRules: KeepRules;
}
