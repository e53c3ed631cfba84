import { describeSweep } from "../../recovery/describe-sweep.ts";
import { compileSharedOptions } from "../../runner/compile.ts";
import { openDatabase } from "../../runner/open-database.ts";
import { makeWorkerSweeper } from "../../runner/worker-sweeper.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseSpan } from "../flags.ts";
import { quietLogger } from "../open-queue.ts";
import { resolveOptions } from "../resolve-options.ts";
import { formatTable } from "../table.ts";

export const sweep = defineCommand({
  command: ["sweep", "sweep-stale-workers"],
  describe: "Take back the jobs of workers that died",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    "dry-run": {
      type: "boolean",
      default: false,
      describe: "Say which workers and jobs it would be, and change nothing",
    },
    "sweep-threshold": {
      type: "string",
      requiresArg: true,
      describe: "Without a sign of life for this long a worker is dead (default: the config's, or 5m)",
    },
    "recovery-delay": {
      type: "string",
      requiresArg: true,
      describe: "How long the jobs rest before they run again (default: the config's, or 30s)",
    },
  },
  async run(args, terminal) {
    const dryRun = args["dry-run"];
    const threshold = args["sweep-threshold"];
    const delay = args["recovery-delay"];
    const sweepOptions = {
      dryRun,
      ...(threshold !== undefined && { sweepThreshold: parseSpan("sweep-threshold", threshold) }),
      ...(delay !== undefined && { recoveryDelay: parseSpan("recovery-delay", delay) }),
    };
    const { options, connection } = await resolveOptions(args, { logger: quietLogger(), concurrentJobs: 1 });
    try {
      const compiled = compileSharedOptions(options);
      const { database, release } = openDatabase(compiled);
      try {
        const result = await makeWorkerSweeper(compiled, database).sweepStaleWorkers(sweepOptions);
        if (args.json) terminal.printJson(result);
        else if (!result.isDone) terminal.note("Another sweep is under way; nothing was changed by this one.");
        else if (result.workers.length === 0) terminal.print("No worker is dead.");
        else {
          for (const sentence of describeSweep(result, dryRun)) terminal.print(sentence);
          if (result.jobs.length > 0) {
            terminal.print(
              formatTable(result.jobs, [
                { title: "ID", text: (job) => job.id, align: "right" },
                { title: "TASK", text: (job) => job.task },
                { title: "WORKER", text: (job) => job.workerId },
                { title: "OUTCOME", text: (job) => (dryRun ? "would be recovered" : job.outcome) },
              ]),
            );
          }
        }
        return 0;
      } finally {
        await release();
      }
    } finally {
      await connection.release();
    }
  },
});
