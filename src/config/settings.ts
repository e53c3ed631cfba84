import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import {
  aBoolean,
  aCount,
  aDelay,
  aNumber,
  anInterval,
  anObject,
  aSchemaName,
  aText,
  aTimeZone,
  checkAll,
  extensions,
  texts,
} from "./check.ts";
import { defaults } from "./defaults.ts";
import type { ExtraOptions } from "./extra-options.ts";
import { type LocalQueueSettings, resolveLocalQueue } from "./local-queue-settings.ts";
import { type RecoverySettings, resolveRecovery } from "./recovery-settings.ts";
import { withoutUndefined } from "./without-undefined.ts";
import "./preset-options.ts";

type Defaulted = Required<Pick<GraphileConfig.WorkerOptions, Exclude<keyof typeof defaults, "localQueue">>>;

/** Options with every gap filled and every value checked. Built once, frozen, then handed out in pieces. */
export interface Settings extends Readonly<Defaulted> {
  readonly connectionString: string | undefined;
  readonly taskDirectory: string;
  readonly crontabFile: string;
  readonly localQueue: LocalQueueSettings;
  /** Milliseconds; without it a graceful shutdown waits as long as jobs take. */
  readonly shutdownGracePeriod: number | undefined;
  readonly listenConnectionString: string | undefined;
  /** If given, only jobs with at least one of these flags are run. */
  readonly acceptedFlags: readonly string[] | undefined;
  readonly recovery: RecoverySettings | false;
  /** The user's own state, for `helpers.context`. */
  readonly context: GraphileWorker.Context | undefined;
  /** The option `hooks`. */
  readonly lifecycleHooks: ExtraOptions["hooks"];
}

const checks = {
  connectionString: aText,
  schema: aSchemaName,
  maxPoolSize: aCount,
  concurrentJobs: aCount,
  pollInterval: anInterval,
  preparedStatements: aBoolean,
  taskDirectory: aText,
  crontabFile: aText,
  fileExtensions: extensions,
  gracefulShutdownAbortTimeout: aDelay,
  useNodeTime: aBoolean,
  minResetLockedInterval: anInterval,
  maxResetLockedInterval: anInterval,
  getQueueNameBatchDelay: aDelay,
  logger: anObject,
  events: anObject,
  localQueue: anObject,
  completeJobBatchDelay: aNumber,
  failJobBatchDelay: aNumber,
  shutdownGracePeriod: aDelay,
  interruptedJobRetryDelay: aDelay,
  useNotifications: aBoolean,
  listenConnectionString: aText,
  acceptedFlags: texts,
  timeZone: aTimeZone,
  maxMigrationWaitTime: aDelay,
  context: anObject,
  hooks: anObject,
};

/** The names that can stand at `preset.worker` and are checked here. */
export const settingNames: readonly string[] = [...Object.keys(checks), "recovery"];

/** Fills the gaps of `preset.worker`; a value that cannot work is an error here, at once. */
export function resolveSettings(options: GraphileConfig.WorkerOptions, cwd = process.cwd()): Settings {
  checkAll(options, checks);
  const given: GraphileConfig.WorkerOptions = { ...defaults, ...withoutUndefined(options) };
  const known = given as typeof given & Defaulted;
  checkResetInterval(known);
  return Object.freeze({
    ...pickDefaulted(known),
    connectionString: given.connectionString,
    taskDirectory: given.taskDirectory ?? join(cwd, "tasks"),
    crontabFile: given.crontabFile ?? join(cwd, "crontab"),
    localQueue: resolveLocalQueue(given.localQueue ?? defaults.localQueue, known.pollInterval),
    shutdownGracePeriod: given.shutdownGracePeriod,
    listenConnectionString: given.listenConnectionString,
    acceptedFlags: given.acceptedFlags,
    recovery: resolveRecovery(given),
    context: given.context,
    lifecycleHooks: given.hooks,
  });
}

function pickDefaulted(values: Defaulted): Defaulted {
  const names = Object.keys(defaults) as (keyof Defaulted)[];
  return Object.fromEntries(names.map((name) => [name, values[name]])) as unknown as Defaulted;
}

function checkResetInterval({ minResetLockedInterval, maxResetLockedInterval }: Defaulted): void {
  if (maxResetLockedInterval < minResetLockedInterval) {
    throw new ConfigError(
      `Invalid values for minResetLockedInterval (${minResetLockedInterval})/maxResetLockedInterval ` +
        `(${maxResetLockedInterval}): the second must not be less than the first.`,
    );
  }
}
