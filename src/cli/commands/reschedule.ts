import type { RescheduleOptions } from "../../index.ts";
import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, parseMoment, yesFlag } from "../flags.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

export const reschedule = defineCommand({
  command: "reschedule [ids..]",
  describe: "Change when, how urgently and how often jobs are tried",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...yesFlag,
    ...jsonFlag,
    now: { type: "boolean", default: false, describe: "Let them run at once" },
    "run-at": { type: "string", requiresArg: true, describe: "A date, or how long from now (30s, 15m, 2h, 7d)" },
    priority: { type: "number", requiresArg: true, describe: "Lower numbers run first" },
    attempts: { type: "number", requiresArg: true, describe: "Attempts made so far" },
    "max-attempts": { type: "number", requiresArg: true, describe: "Attempts at most" },
  },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  async run(args, terminal) {
    const options = changesOf(args);
    const action = {
      verb: "Reschedule",
      done: "rescheduled",
    };
    return withUtils(args, (utils) =>
      actOnJobs(utils, args, { ...action, act: (ids) => utils.rescheduleJobs(ids, options) }, terminal),
    );
  },
});

function changesOf(args: {
  now: boolean;
  "run-at": string | undefined;
  priority: number | undefined;
  attempts: number | undefined;
  "max-attempts": number | undefined;
}): RescheduleOptions {
  const { now, "run-at": runAt, priority, attempts, "max-attempts": maxAttempts } = args;
  if (now && runAt !== undefined) throw new UsageError("Give either --now or --run-at, not both.");
  const options: RescheduleOptions = {
    ...(now && { runAt: "now" }),
    ...(runAt !== undefined && { runAt: parseMoment("run-at", runAt, 1) }),
    ...(priority !== undefined && { priority }),
    ...(attempts !== undefined && { attempts }),
    ...(maxAttempts !== undefined && { maxAttempts }),
  };
  if (Object.keys(options).length === 0) {
    throw new UsageError("Say what to change: --now, --run-at, --priority, --attempts or --max-attempts.");
  }
  return options;
}
