import { ConfigError } from "../errors.ts";
import { nearest, suggestion } from "../util/nearest.ts";
import { recoveryKeys } from "./recovery-settings.ts";
import { settingNames } from "./settings.ts";
import { withoutUndefined } from "./without-undefined.ts";

/** Given directly and read where they are used; a preset cannot carry them. */
const rawNames = [
  "forbiddenFlags",
  "pgPool",
  "workerId",
  "autostart",
  "workerPool",
  "abortSignal",
  "noHandleSignals",
  "taskList",
  "crontab",
  "parsedCronItems",
];

const renamed = new Set(["concurrency", "noPreparedStatements"]);
const presetNames = new Set([...settingNames, ...recoveryKeys, "cron"]);
const knownNames = [...presetNames, ...renamed, ...rawNames, "preset"];

/** The part of directly given options that can stand at `preset.worker`, under the names it has there. */
export function toWorkerOptions(options: object): GraphileConfig.WorkerOptions {
  const { concurrency, noPreparedStatements, ...rest } = withoutUndefined(options as Record<string, unknown>);
  const moved = Object.fromEntries(Object.entries(rest).filter(([name]) => presetNames.has(name)));
  return {
    ...moved,
    ...(concurrency !== undefined && { concurrentJobs: concurrency as number }),
    ...(noPreparedStatements !== undefined && { preparedStatements: !noPreparedStatements }),
  };
}

/** Combinations that contradict themselves. */
export function checkCombinations(options: object): void {
  const given = options as Record<string, unknown>;
  const exclude = (one: string, other: string, message: string): void => {
    if (given[one] && given[other]) throw new ConfigError(message);
  };
  exclude("taskList", "taskDirectory", "Exactly one of either `taskDirectory` or `taskList` should be set");
  exclude("crontab", "parsedCronItems", "`crontab` and `parsedCronItems` must not be set at the same time.");
  exclude(
    "pgPool",
    "connectionString",
    "Both `pgPool` and `connectionString` are set, at most one of these options should be provided",
  );
  if (given.workerId && Number(given.concurrency ?? 1) > 1) {
    throw new ConfigError("You must not set workerId when concurrency > 1; each worker must have a unique identifier");
  }
}

/** One sentence for each option that nobody knows. A preset may carry a plugin's own keys, so there only near misses count. */
export function findUnknown(options: object, preset: GraphileConfig.WorkerOptions | undefined): string[] {
  const direct = Object.keys(options).filter((name) => !knownNames.includes(name));
  const inPreset = Object.keys(preset ?? {}).filter((name) => !presetNames.has(name) && nearest(name, presetNames));
  return [
    ...direct.map((name) => `Unknown option '${name}' is ignored.${suggestion(name, knownNames)}`),
    ...inPreset.map((name) => `Unknown option '${name}' in preset.worker is ignored.${suggestion(name, presetNames)}`),
  ];
}
