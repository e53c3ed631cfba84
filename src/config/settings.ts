import { resolve } from "node:path";
import { ConfigError } from "../errors.ts";
import { type LocalQueueSettings, resolveLocalQueue } from "./local-queue-options.ts";
import { defaultsOf, forPreset, type GivenInPreset, givenOf, type ResolvedPreset, readOptions } from "./option.ts";
import { extraTable, filesTable, poolTable, presetTable, sharedTable, workerSharedTable } from "./options.ts";
import { type RecoveryOptions, type RecoverySettings, resolveRecovery } from "./recovery-options.ts";

const settled = { ...sharedTable, ...extraTable, ...workerSharedTable, ...poolTable, ...filesTable, ...presetTable };
type Settled = typeof settled;

declare global {
  namespace GraphileConfig {
    /** Everything that can be set at `preset.worker`. */
    interface WorkerOptions extends GivenInPreset<Settled>, RecoveryOptions {}

    interface Preset {
      worker?: WorkerOptions;
    }
  }
}

/** Options with every gap filled and every value checked. Built once, frozen, then handed out in pieces. */
export interface Settings extends Omit<ResolvedPreset<Settled>, "localQueue" | "recovery"> {
  readonly localQueue: LocalQueueSettings;
  readonly recovery: RecoverySettings | false;
}

const settledInPreset = forPreset(settled);
export const workerDefaults = givenOf(defaultsOf(settledInPreset)) as GraphileConfig.WorkerOptions;

/** Fills the gaps of `preset.worker`; a value that cannot work is an error here, at once. */
export function resolveSettings(options: GraphileConfig.WorkerOptions, cwd = process.cwd()): Settings {
  const read = readOptions(settledInPreset, options) as unknown as ResolvedPreset<Settled>;
  checkResetInterval(read);
  return Object.freeze({
    ...read,
    taskDirectory: resolve(cwd, read.taskDirectory),
    crontabFile: resolve(cwd, read.crontabFile),
    localQueue: resolveLocalQueue(read.localQueue, read.pollInterval),
    recovery: resolveRecovery({ ...options, recovery: read.recovery }),
  });
}

function checkResetInterval({
  minResetLockedInterval,
  maxResetLockedInterval,
}: Pick<Settings, "minResetLockedInterval" | "maxResetLockedInterval">): void {
  if (maxResetLockedInterval < minResetLockedInterval) {
    throw new ConfigError(
      `Invalid values for minResetLockedInterval (${minResetLockedInterval})/maxResetLockedInterval ` +
        `(${maxResetLockedInterval}): the second must not be less than the first.`,
    );
  }
}
