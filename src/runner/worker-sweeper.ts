import {
  type RecoveryOptions,
  type RecoverySettings,
  recoveryDefaults,
  resolveRecovery,
} from "../config/recovery-options.ts";
import type { Database } from "../db/database.ts";
import { watchLines } from "../db/statements/heartbeat.ts";
import { type ActiveWorker, listActiveWorkers } from "../recovery/list-active-workers.ts";
import { type SweepResult, sweep } from "../recovery/sweep.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import { sweepHooks } from "./hooks/sweep-hooks.ts";
import { makeKeepRules } from "./keep-rules.ts";

/** Options left out are taken from the option `recovery`, or from its defaults. */
export interface SweepStaleWorkersOptions
  extends Pick<
    RecoveryOptions,
    | "sweepThreshold"
    | "recoveryDelay"
    | "resilientSweepThresholdMultiplier"
    | "resilientJobFlags"
    | "crashGrace"
    | "maxCrashes"
    | "recoveryBackoff"
  > {
  /** Report which workers and jobs it would recover, and change nothing. */
  dryRun?: boolean;
}

/** Recovers the jobs of dead workers, whether or not recovery is on in this process. */
export interface WorkerSweeper {
  /** Recovers the jobs of dead workers now, as `hathi sweep` does. */
  sweepStaleWorkers(options?: SweepStaleWorkersOptions): Promise<SweepResult>;
  /** Lists the workers that take part in recovery. Those without a heartbeat for `threshold` milliseconds (default `sweepThreshold`) are marked stale. */
  listActiveWorkers(threshold?: number): Promise<ActiveWorker[]>;
}

/** The Rust port's name for a sweep that no worker made. */
const sweeperId = "worker_utils";

export function makeWorkerSweeper({ settings, lifecycle }: CompiledSharedOptions, database: Database): WorkerSweeper {
  const own = settings.recovery || recoveryDefaults;
  const keepRules = makeKeepRules(settings, {}, () => undefined);
  return {
    async sweepStaleWorkers({ dryRun = false, ...given } = {}) {
      const chosen = choose(own, given);
      if (!dryRun) await database.run(watchLines, { graceMs: chosen.crashGrace });
      const hooks = sweepHooks(lifecycle);
      // Whoever sweeps by hand knows whether there was an outage.
      const witnessedMs = (): null => null;
      return sweep(database, { settings: chosen, dryRun, withOrphans: true, witnessedMs, sweeperId, hooks, keepRules });
    },
    listActiveWorkers: (threshold = own.sweepThreshold) => listActiveWorkers(database, threshold),
  };
}

/** Checked as the option is; but whoever sweeps by hand may be stricter than the beat of living workers allows. */
function choose(own: RecoverySettings, given: RecoveryOptions): RecoverySettings {
  const sweepThreshold = given.sweepThreshold ?? own.sweepThreshold;
  const heartbeatInterval = Math.min(own.heartbeatInterval, Math.max(1, sweepThreshold - 1));
  return resolveRecovery({ recovery: { ...own, ...given, heartbeatInterval } }) || own;
}
