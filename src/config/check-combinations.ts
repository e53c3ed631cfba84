import { ConfigError } from "../errors.ts";

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
