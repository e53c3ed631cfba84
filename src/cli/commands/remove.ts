import { printable } from "../../util/printable.ts";
import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

export const remove = defineCommand({
  command: "remove [keys..]",
  describe: "Remove jobs by their keys, or by a filter",
  flags: { ...databaseFlags, ...filterFlags, ...yesFlag, ...jsonFlag },
  positionals: { keys: { type: "string", array: true, describe: "Keys of jobs; or give a filter" } },
  run: (args, terminal) =>
    withUtils(args, async (utils) => {
      if (!args.keys?.length) {
        const action = {
          verb: "Remove",
          done: "removed",
          by: "key",
          act: (ids: readonly string[]) => utils.completeJobs(ids),
        };
        return actOnJobs(utils, { ...args, ids: [] }, action, terminal);
      }
      const ids: string[] = [];
      for (const key of args.keys) {
        const job = await utils.removeJob(key);
        if (job) ids.push(job.id);
        else if (!args.json) terminal.note(`No job has the key '${printable(key)}'.`);
      }
      if (args.json) terminal.printJson(ids);
      else if (ids.length > 0) terminal.print(`${ids.length} job${ids.length === 1 ? "" : "s"} removed.`);
      if (ids.length === 0 && args.keys.length === 0) throw new UsageError("Give at least one key.");
      return ids.length > 0 ? 0 : 1;
    }),
});
