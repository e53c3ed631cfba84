import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const complete = defineCommand({
  command: "complete [ids..]",
  describe: "Delete jobs as if they had succeeded",
  flags: { ...databaseFlags, ...filterFlags, ...yesFlag, ...jsonFlag },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withUtils(args, (utils) =>
      actOnJobs(utils, args, { verb: "Complete", done: "completed", act: (ids) => utils.completeJobs(ids) }, terminal),
    ),
});
