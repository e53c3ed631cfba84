import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withQueue } from "../open-queue.ts";

export const retry = defineCommand({
  command: "retry [ids..]",
  describe: "Give jobs all their attempts back and let them run now",
  flags: { ...databaseFlags, ...filterFlags, ...yesFlag, ...jsonFlag },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withQueue(args, (queue) =>
      actOnJobs(
        queue,
        args,
        {
          verb: "Retry",
          done: "set to run again",
          act: (ids) => queue.rescheduleJobs(ids, { runAt: new Date(), attempts: 0 }),
        },
        terminal,
      ),
    ),
});
