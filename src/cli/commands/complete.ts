import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withQueue } from "../open-queue.ts";

export const complete = defineCommand({
  command: "complete [ids..]",
  describe: "Delete jobs as if they had succeeded",
  flags: { ...databaseFlags, ...filterFlags, ...yesFlag, ...jsonFlag },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withQueue(args, (queue) =>
      actOnJobs(queue, args, { verb: "Complete", done: "completed", act: (ids) => queue.completeJobs(ids) }, terminal),
    ),
});
