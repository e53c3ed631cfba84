import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { Logger } from "../../logger.ts";
import { compileSharedOptions } from "../../runner/compile.ts";
import { findCronItems } from "../../runner/cron-items.ts";
import { openDatabase } from "../../runner/open-database.ts";
import { runOnce, run as runWorker } from "../../runner/run.ts";
import { runMigrations } from "../../runner/run-migrations.ts";
import { runWatching } from "../../runner/run-watching.ts";
import { cleanUp, parseCleanupTasks } from "../clean-up.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, wholeNumber } from "../flags.ts";
import { logFormats, makeLogFactory } from "../log-factory.ts";
import { type ResolvedOptions, resolveOptions } from "../resolve-options.ts";
import { deferToWorker } from "../signals.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";

const flags = {
  ...databaseFlags,
  "schema-only": { type: "boolean", default: false, describe: "Install or update the schema, then exit" },
  once: { type: "boolean", default: false, describe: "Run until there are no runnable jobs left, then exit" },
  watch: {
    alias: "w",
    type: "boolean",
    default: false,
    describe: "Reload tasks and crontab when their files change, without restarting",
  },
  crontab: { type: "string", requiresArg: true, describe: "The crontab (default: ./crontab)" },
  jobs: { alias: "j", type: "number", requiresArg: true, describe: "Jobs to run at once (default: 1)" },
  "max-pool-size": {
    alias: "m",
    type: "number",
    requiresArg: true,
    describe: "Database connections at most (default: 10)",
  },
  "poll-interval": {
    type: "number",
    requiresArg: true,
    describe: "Milliseconds between looks for work when no notification arrives (default: 2000)",
  },
  "no-prepared-statements": {
    type: "boolean",
    default: false,
    describe: "Do without prepared statements, for poolers that cannot keep them",
  },
  cleanup: {
    type: "string",
    array: true,
    requiresArg: true,
    describe: "Clean up, then exit: a comma list of GC_TASK_IDENTIFIERS, GC_JOB_QUEUES, DELETE_PERMAFAILED_JOBS",
  },
  "log-format": {
    choices: logFormats,
    requiresArg: true,
    describe: "text, json (one object per line), or auto (json where there is no terminal)",
  },
} as const;

export const run = defineCommand({
  command: ["run", "$0"],
  describe: "Run a worker on ./tasks and ./crontab (the default)",
  flags,
  async run(args, terminal) {
    if (args.once && args["schema-only"]) throw new UsageError("--once and --schema-only cannot be combined.");
    if (args.watch && (args.once || args["schema-only"]))
      throw new UsageError("--watch needs a worker that keeps running.");
    const cleanupTasks = args.cleanup && parseCleanupTasks(args.cleanup);
    const logger = new Logger(makeLogFactory(args["log-format"] ?? "text"));
    const settings = { ...(await workerOptionsOf(args)), ...(args["log-format"] !== undefined && { logger }) };
    const resolved = await resolveOptions(args, settings, { logger });
    const signals = deferToWorker(() => resolved.connection.release());
    try {
      announce(resolved, terminal);
      const { options } = resolved;
      if (args["schema-only"]) {
        await runMigrations(options);
        return terminal.print("Schema updated");
      }
      if (cleanupTasks) {
        const { database, release } = openDatabase(compileSharedOptions(options));
        try {
          await cleanUp(database, cleanupTasks, options, terminal);
        } finally {
          await release();
        }
        return terminal.print("Cleaned up");
      }
      if (args.once) {
        // Nothing recurs here, but a crontab with mistakes is better found now than by the next worker.
        await findCronItems(compileSharedOptions(options));
        signals.handOver();
        await runOnce(options);
      } else {
        const runner = await (args.watch ? runWatching : runWorker)(options);
        signals.handOver();
        await runner.promise;
      }
      return Number(process.exitCode ?? 0);
    } finally {
      await resolved.connection.release();
    }
  },
});

function announce({ connection, options }: ResolvedOptions, terminal: Terminal): void {
  if (!connection.isEmbedded) return;
  terminal.note(
    `No database is configured: using an embedded PostgreSQL with its data in ./.hathi; psql "${options.preset.worker?.connectionString}"`,
  );
}

/** Only what was said: a flag that was not given must not override the config file. */
async function workerOptionsOf(args: {
  jobs: number | undefined;
  "max-pool-size": number | undefined;
  "poll-interval": number | undefined;
  "no-prepared-statements": boolean;
  crontab: string | undefined;
}): Promise<GraphileConfig.WorkerOptions> {
  const concurrentJobs = wholeNumber("jobs", args.jobs, 1);
  const maxPoolSize = wholeNumber("max-pool-size", args["max-pool-size"], 1);
  const pollInterval = wholeNumber("poll-interval", args["poll-interval"], 1);
  const crontabFile = args.crontab === undefined ? undefined : resolve(args.crontab);
  if (crontabFile !== undefined) {
    await access(crontabFile).catch(() => {
      throw new UsageError(`There is no crontab '${crontabFile}'.`);
    });
  }
  return {
    ...(concurrentJobs !== undefined && { concurrentJobs }),
    ...(maxPoolSize !== undefined && { maxPoolSize }),
    ...(pollInterval !== undefined && { pollInterval }),
    ...(args["no-prepared-statements"] && { preparedStatements: false }),
    ...(crontabFile !== undefined && { crontabFile }),
  };
}
