import { recoveryDefaults } from "../config/defaults.ts";
import type { RecoveryOptions } from "../config/extra-options.ts";
import { type RecoverySettings, resolveRecovery } from "../config/recovery-settings.ts";
import type { Database } from "../db/database.ts";
import { watchLines } from "../db/statements/worker-lines.ts";
import { type ActiveWorker, listActiveWorkers } from "../recovery/list-active-workers.ts";
import { type SweepResult, sweep } from "../recovery/sweep.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import { sweepHooks } from "./sweep-hooks.ts";

/** What is left out is taken from the option `recovery`, or from its defaults. */
export interface SweepStaleWorkersOptions
  extends Pick<
    RecoveryOptions,
    | "sweepThreshold"
    | "recoveryDelay"
    | "resilientSweepThresholdMultiplier"
    | "resilientJobFlags"
    | "crashGrace"
    | "maxCrashes"
  > {
  /** Find out which workers and jobs it would be, and change nothing. */
  dryRun?: boolean;
}

/** Looks after the workers of a schema, whether or not recovery is on in this process. */
export interface WorkerSweeper {
  /** Takes jobs from workers that are dead, now. */
  sweepStaleWorkers(options?: SweepStaleWorkersOptions): Promise<SweepResult>;
  /** Workers that take part in recovery; stale after so many milliseconds (`sweepThreshold`, if left out). */
  listActiveWorkers(threshold?: number): Promise<ActiveWorker[]>;
}

/** The Rust port's name for a sweep that no worker made. */
const sweeperId = "worker_utils";

export function makeWorkerSweeper({ settings, lifecycle }: CompiledSharedOptions, database: Database): WorkerSweeper {
  const own = settings.recovery || recoveryDefaults;
  return {
    async sweepStaleWorkers({ dryRun = false, ...given } = {}) {
      const chosen = choose(own, given);
      if (!dryRun) await database.run(watchLines, { graceMs: chosen.crashGrace });
      const hooks = sweepHooks(lifecycle);
      return sweep(database, { settings: chosen, dryRun, withOrphans: true, sweeperId, hooks });
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
