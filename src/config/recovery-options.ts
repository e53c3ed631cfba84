import { ConfigError } from "../errors.ts";
import { aBoolean, aCount, aDelay, aFactor, anInterval, texts } from "./kinds.ts";
import { defaultsOf, type Given, givenOf, type Kind, option, type Resolved, readOptions } from "./option.ts";

/** The flag of jobs whose workers are given more time before they count as dead. */
export const INFRASTRUCTURE_RESILIENT_FLAG = "infrastructure_resilient";

/** Inside `recovery`, or beside it: naming one of them switches recovery on. */
export const recoveryTable = {
  /** Milliseconds between heartbeats. */
  heartbeatInterval: option(anInterval, { default: 30_000 }),
  /** Milliseconds between scans for dead workers. */
  sweepInterval: option(anInterval, { default: 60_000 }),
  /** Milliseconds without a heartbeat after which a worker counts as dead. */
  sweepThreshold: option(anInterval, { default: 5 * 60_000 }),
  /** Milliseconds a recovered job waits if the death is only presumed, or if it was running in an earlier one, too. */
  recoveryDelay: option(aDelay, { default: 30_000 }),
  /** A worker that holds a resilient job is given this many times `sweepThreshold`. */
  resilientSweepThresholdMultiplier: option(aFactor, { default: 3 }),
  /** Flags that make a job resilient. */
  resilientJobFlags: option(texts, { default: [INFRASTRUCTURE_RESILIENT_FLAG] }),
  /** Milliseconds a process's event loop may be blocked before its worker counts as dead. */
  maxEventLoopBlock: option(anInterval, { default: 60 * 60_000 }),
  /** Milliseconds from the loss of a dead process's connection until its jobs may be returned. */
  crashGrace: option(aDelay, { default: 5_000 }),
  /** A job that was the only suspect in this many deaths of its worker in a row is failed permanently. */
  maxCrashes: option(aCount, { default: 3 }),
  /** True: a job that was running when its worker died counts as failed, and waits for the usual exponential back-off. */
  recoveryBackoff: option(aBoolean, { default: false }),
};

/** How jobs of a dead worker are found and returned. */
export interface RecoveryOptions extends Given<typeof recoveryTable> {}
export type RecoverySettings = Resolved<typeof recoveryTable>;

export const recoveryDefaults: RecoverySettings = defaultsOf(recoveryTable);

/** What stands inside `recovery`. */
const innerTable = {
  /** False: no recovery, whatever the other settings say. */
  enabled: option(aBoolean, { default: true }),
  ...recoveryTable,
};

/** The option `recovery` itself; `resolveRecovery` reads it together with the settings beside it. */
export const aRecovery: Kind<boolean | (RecoveryOptions & { enabled?: boolean | undefined })> = {
  type: "boolean | (RecoveryOptions & { enabled?: boolean })",
  inner: innerTable,
  read(value, name) {
    if (typeof value === "boolean" || (typeof value === "object" && value !== null)) return value;
    throw new ConfigError(`'${name}' must be true, false or an object of settings, got ${String(value)}.`);
  },
};

/** Off unless asked for; naming any of its settings asks for it, and `recovery: false` or `enabled: false` has the last word. */
export function resolveRecovery(
  options: RecoveryOptions & {
    readonly recovery?: boolean | (RecoveryOptions & { enabled?: boolean | undefined }) | undefined;
  },
): RecoverySettings | false {
  const { recovery } = options;
  const names = Object.keys(recoveryTable) as (keyof RecoveryOptions)[];
  const loose = givenOf(Object.fromEntries(names.map((name) => [name, options[name]])));
  if (recovery === false || (recovery === undefined && Object.keys(loose).length === 0)) return false;

  const inner = typeof recovery === "object" ? givenOf(recovery) : {};
  const { enabled, ...settings } = readOptions(innerTable, { ...loose, ...inner }, "recovery.");
  if (!enabled) return false;
  if (settings.sweepThreshold <= settings.heartbeatInterval) {
    throw new ConfigError(
      `'recovery.sweepThreshold' (${settings.sweepThreshold}) must be longer than 'recovery.heartbeatInterval' ` +
        `(${settings.heartbeatInterval}), or living workers would count as dead.`,
    );
  }
  return settings;
}
