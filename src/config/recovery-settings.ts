import { ConfigError } from "../errors.ts";
import { aCount, aDelay, aFactor, anInterval, checkAll, texts } from "./check.ts";
import { recoveryDefaults } from "./defaults.ts";
import type { ExtraOptions, RecoveryOptions } from "./extra-options.ts";
import { withoutUndefined } from "./without-undefined.ts";

export type RecoverySettings = Readonly<Required<RecoveryOptions>>;

const checks = {
  heartbeatInterval: anInterval,
  sweepInterval: anInterval,
  sweepThreshold: anInterval,
  recoveryDelay: aDelay,
  resilientSweepThresholdMultiplier: aFactor,
  resilientJobFlags: texts,
  maxEventLoopBlock: anInterval,
  crashGrace: aDelay,
  maxCrashes: aCount,
};

export const recoveryKeys = Object.keys(checks) as (keyof RecoveryOptions)[];

/** Off unless asked for; naming any of its settings asks for it, and `recovery: false` has the last word. */
export function resolveRecovery(options: ExtraOptions): RecoverySettings | false {
  const { recovery } = options;
  const loose = withoutUndefined(Object.fromEntries(recoveryKeys.map((key) => [key, options[key]])));
  if (recovery === false || (recovery === undefined && Object.keys(loose).length === 0)) return false;
  if (recovery !== undefined && recovery !== true && (typeof recovery !== "object" || recovery === null)) {
    throw new ConfigError(`'recovery' must be true, false or an object of settings, got ${String(recovery)}.`);
  }

  const inner = typeof recovery === "object" ? withoutUndefined(recovery) : {};
  const settings: RecoverySettings = { ...recoveryDefaults, ...loose, ...inner };
  checkAll(settings, checks, "recovery.");
  if (settings.sweepThreshold <= settings.heartbeatInterval) {
    throw new ConfigError(
      `'recovery.sweepThreshold' (${settings.sweepThreshold}) must be longer than 'recovery.heartbeatInterval' ` +
        `(${settings.heartbeatInterval}), or living workers would count as dead.`,
    );
  }
  return Object.freeze(settings);
}
