import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withQueue } from "../open-queue.ts";

export const fail = defineCommand({
  command: "fail [ids..]",
  describe: "Mark jobs as failed for good",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...yesFlag,
    ...jsonFlag,
    reason: { alias: "r", type: "string", requiresArg: true, describe: "The error to record" },
  },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withQueue(args, (queue) =>
      actOnJobs(
        queue,
        args,
        { verb: "Fail", done: "failed", act: (ids) => queue.permanentlyFailJobs(ids, args.reason) },
        terminal,
      ),
    ),
});
