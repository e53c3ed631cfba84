import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const fail = defineCommand({
  command: "fail [ids..]",
  describe: "Fail jobs permanently",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...yesFlag,
    ...jsonFlag,
    reason: { alias: "r", type: "string", requiresArg: true, describe: "The error to record" },
  },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withUtils(args, (utils) =>
      actOnJobs(
        utils,
        args,
        { verb: "Fail", done: "failed", act: (ids) => utils.permanentlyFailJobs(ids, args.reason) },
        terminal,
      ),
    ),
});
