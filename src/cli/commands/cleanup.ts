import { countJobs } from "../../admin/list-jobs.ts";
import { compileSharedOptions } from "../../runner/compile.ts";
import { openDatabase } from "../../runner/open-database.ts";
import { allCleanupTasks, cleanUp, parseCleanupTasks } from "../clean-up.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, yesFlag } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import { quietLogger } from "../open-queue.ts";
import { resolveOptions } from "../resolve-options.ts";

export const cleanup = defineCommand({
  command: "cleanup [tasks..]",
  describe: "Delete failed jobs, and forget tasks and queues that have none",
  flags: { ...databaseFlags, ...yesFlag, ...jsonFlag },
  positionals: {
    tasks: {
      type: "string",
      array: true,
      describe: "delete-permanently-failed-jobs, gc-task-identifiers, gc-job-queues; all of them if none is named",
    },
  },
  async run(args, terminal) {
    const named = parseCleanupTasks(args.tasks ?? []);
    const tasks = named.length > 0 ? named : allCleanupTasks;
    const { options, connection } = await resolveOptions(args, { logger: quietLogger() });
    try {
      const { database, release } = openDatabase(compileSharedOptions(options));
      try {
        if (tasks.includes("DELETE_PERMAFAILED_JOBS") && !args.yes) {
          const failed = await countJobs(database, { state: "failed" });
          const isMeant = failed === 0 || (await terminal.confirm(`Delete ${formatCount(failed)} failed jobs?`));
          if (!isMeant) {
            terminal.note("Nothing was changed.");
            return 1;
          }
        }
        await cleanUp(database, tasks, options, terminal);
        if (args.json) terminal.printJson({ tasks });
        else terminal.print("Cleaned up.");
        return 0;
      } finally {
        await release();
      }
    } finally {
      await connection.release();
    }
  },
});
