import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const retry = defineCommand({
  command: "retry [ids..]",
  describe: "Restore all attempts of jobs and let them run now",
  flags: { ...databaseFlags, ...filterFlags, ...yesFlag, ...jsonFlag },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withUtils(args, (utils) =>
      actOnJobs(
        utils,
        args,
        {
          verb: "Retry",
          done: "set to run again",
          act: (ids) => utils.retryJobs(ids),
        },
        terminal,
      ),
    ),
});
