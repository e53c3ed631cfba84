import { cleanUp, parseCleanupTasks, usualCleanupTasks } from "../cleanup-tasks.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, yesFlag } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import { withUtils } from "../with-utils.ts";

export const cleanup = defineCommand({
  command: "cleanup [tasks..]",
  describe: "Delete permanently failed jobs, queues (or tasks) without jobs, or history that has expired",
  flags: { ...databaseFlags, ...yesFlag, ...jsonFlag },
  positionals: {
    tasks: {
      type: "string",
      array: true,
      describe:
        "delete-permanently-failed-jobs, gc-job-queues, gc-task-identifiers, drop-expired-history; the first two if none is named",
    },
  },
  run(args, terminal) {
    const named = parseCleanupTasks(args.tasks ?? []);
    const tasks = named.length > 0 ? named : usualCleanupTasks;
    return withUtils(args, async (utils, { options }) => {
      if (tasks.includes("DELETE_PERMAFAILED_JOBS") && !args.yes) {
        const dead = await utils.countJobs({ state: "dead" });
        const question = `Delete ${formatCount(dead)} permanently failed job${dead === 1 ? "" : "s"}?`;
        if (dead > 0 && !(await terminal.confirm(question))) {
          terminal.note("Nothing was changed.");
          return 1;
        }
      }
      await cleanUp(utils, tasks, options, terminal);
      if (args.json) terminal.printJson({ tasks });
      else terminal.print("Cleaned up.");
      return 0;
    });
  },
});
