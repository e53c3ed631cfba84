import { hostname, userInfo } from "node:os";
import { actOnJobs } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, yesFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const cancel = defineCommand({
  command: "cancel [ids..]",
  describe: "Cancel jobs: delete waiting ones, stop running ones",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...yesFlag,
    ...jsonFlag,
    reason: { alias: "r", type: "string", requiresArg: true, describe: "The reason to record" },
  },
  positionals: { ids: { type: "string", array: true, describe: "Ids of jobs; or give a filter" } },
  run: (args, terminal) =>
    withUtils(args, (utils) => {
      const stopping: string[] = [];
      const act = async (ids: readonly string[]): Promise<readonly { readonly id: string }[]> => {
        const by = `${userInfo().username}@${hostname()}`;
        const result = await utils.cancelJobs(ids, { by, ...(args.reason !== undefined && { reason: args.reason }) });
        stopping.push(...result.stopping.map(({ id }) => id));
        return [...result.cancelled, ...result.stopping];
      };
      const details = (): object => {
        if (stopping.length > 0 && !args.json)
          terminal.note(`${stopping.length} of them were running and are stopping.`);
        return { stopping };
      };
      return actOnJobs(
        utils,
        args,
        { verb: "Cancel", done: "cancelled", leaves: "permanently failed", act, details },
        terminal,
      );
    }),
});
