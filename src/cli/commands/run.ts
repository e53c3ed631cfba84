import { access } from "node:fs/promises";
import { resolve } from "node:path";
import type { DashboardServer, ServeDashboardOptions } from "../../dashboard/server/index.ts";
import {
  getCronItems,
  Logger,
  makeLogFactory,
  makeWorkerUtils,
  runMigrations,
  runOnce,
  runWatching,
  run as runWorker,
} from "../../index.ts";
import { type Metrics, type MetricsServer, makeMetrics, serveMetrics } from "../../metrics/index.ts";
import { cleanUp, parseCleanupTasks } from "../cleanup-tasks.ts";
import { defineCommand } from "../command.ts";
import { readDashboardArgs, startDashboard } from "../dashboard-flags.ts";
import { deferToWorker } from "../defer-signals.ts";
import { databaseFlags, wholeNumber } from "../flags.ts";
import { type ResolvedOptions, resolveOptions } from "../resolve-options.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";

/** As many as the library takes; said here in the words of the flag. */
const mostJobs = 100_000;

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
  jobs: {
    alias: ["j", "concurrency"],
    type: "number",
    requiresArg: true,
    describe: "Jobs to run at once (default: 1)",
  },
  "max-pool-size": {
    alias: "m",
    type: "number",
    requiresArg: true,
    describe: "Database connections at most (default: 10)",
  },
  "poll-interval": {
    type: "number",
    requiresArg: true,
    describe: "Milliseconds between polls when no notification arrives (default: 2000)",
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
  "metrics-port": {
    type: "number",
    requiresArg: true,
    describe: "Serve /metrics for Prometheus, /livez and /readyz on this port",
  },
  "metrics-host": {
    type: "string",
    requiresArg: true,
    describe: "The address to serve them on (default: 127.0.0.1, this machine only)",
  },
  dashboard: {
    type: "boolean",
    default: false,
    describe: "Serve the dashboard beside the worker; its address is printed",
  },
  "dashboard-port": {
    type: "number",
    requiresArg: true,
    describe: "The dashboard's port (default: 4000, or any that is free)",
  },
  "dashboard-host": {
    type: "string",
    requiresArg: true,
    describe: "The dashboard's address (default: 127.0.0.1, this machine only); others need HATHI_DASHBOARD_TOKEN",
  },
  "log-payloads": {
    type: "boolean",
    default: false,
    describe: "Write the payloads of jobs into JSON logs; they may contain secrets",
  },
  "log-format": {
    choices: ["text", "json", "auto"],
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
    const dashboard = dashboardOf(args);
    // A dashboard shows what metrics have recorded.
    const metrics = metricsOf(args) ?? (dashboard && makeMetrics());
    const settings = {
      ...(await workerOptionsOf(args)),
      ...(args["log-format"] !== undefined && { logger }),
      ...(metrics && { metrics }),
    };
    const resolved = await resolveOptions(args, settings, { logger });
    const signals = deferToWorker(() => resolved.connection.release());
    try {
      announce(resolved, terminal, logger, args["log-format"] ?? "text");
      const { options } = resolved;
      if (args["schema-only"]) {
        await runMigrations(options);
        return terminal.print("Schema updated");
      }
      if (cleanupTasks) {
        const utils = await makeWorkerUtils(options, { migrate: false });
        try {
          await cleanUp(utils, cleanupTasks, options, terminal);
        } finally {
          await utils.release();
        }
        return terminal.print("Cleaned up");
      }
      if (args.once) {
        // Nothing recurs here, but a crontab with mistakes is better found now than by the next worker.
        await getCronItems(options);
        signals.handOver();
        await runOnce(options);
      } else {
        const server = metrics && args["metrics-port"] !== undefined && (await startServer(metrics, args, logger));
        let page: DashboardServer | undefined;
        try {
          const runner = await (args.watch ? runWatching : runWorker)(options);
          signals.handOver();
          page = dashboard && (await startDashboard(options, dashboard, false));
          if (page) logger.info(`The dashboard is at ${page.url}`);
          await runner.promise;
        } finally {
          if (server) await server.close();
          await page?.close();
        }
      }
      return Number(process.exitCode ?? 0);
    } finally {
      await resolved.connection.release();
    }
  },
});

function announce({ connection }: ResolvedOptions, terminal: Terminal, logger: Logger, format: string): void {
  if (connection.isEmbedded) {
    terminal.note(
      `No database is configured: using an embedded PostgreSQL with its data in ./.hathi; psql "${connection.connectionString}"`,
    );
  } else if (format === "text") {
    terminal.note(`Using ${connection.description}.`);
  } else {
    logger.info(`Using ${connection.description}.`);
  }
}

interface MetricsArgs {
  readonly once: boolean;
  readonly "schema-only": boolean;
  readonly "metrics-port": number | undefined;
  readonly "metrics-host": string | undefined;
}

function metricsOf(args: MetricsArgs): Metrics | undefined {
  const port = wholeNumber("metrics-port", args["metrics-port"], 0, 65_535);
  if (port === undefined && args["metrics-host"] !== undefined)
    throw new UsageError("--metrics-host needs --metrics-port.");
  if (port === undefined) return undefined;
  if (args.once || args["schema-only"]) throw new UsageError("--metrics-port needs a worker that keeps running.");
  return makeMetrics();
}

interface DashboardRunArgs {
  readonly once: boolean;
  readonly "schema-only": boolean;
  readonly dashboard: boolean;
  readonly "dashboard-port": number | undefined;
  readonly "dashboard-host": string | undefined;
}

function dashboardOf(args: DashboardRunArgs): ServeDashboardOptions | undefined {
  const { dashboard, "dashboard-port": port, "dashboard-host": host } = args;
  if (!dashboard && port === undefined && host === undefined) return undefined;
  if (!dashboard) throw new UsageError("--dashboard-port and --dashboard-host need --dashboard.");
  if (args.once || args["schema-only"]) throw new UsageError("--dashboard needs a worker that keeps running.");
  return readDashboardArgs({ port, host }, "dashboard-port");
}

async function startServer(metrics: Metrics, args: MetricsArgs, logger: Logger): Promise<MetricsServer> {
  const server = await serveMetrics(metrics, { port: args["metrics-port"]!, host: args["metrics-host"] });
  logger.info(`Serving /metrics, /livez and /readyz at ${server.url}`);
  return server;
}

/** Only what was said: a flag that was not given must not override the config file. */
async function workerOptionsOf(args: {
  jobs: number | undefined;
  "max-pool-size": number | undefined;
  "poll-interval": number | undefined;
  "no-prepared-statements": boolean;
  crontab: string | undefined;
  "log-payloads": boolean;
}): Promise<GraphileConfig.WorkerOptions> {
  const concurrentJobs = wholeNumber("jobs", args.jobs, 1, mostJobs);
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
    ...(args["log-payloads"] && { logPayloads: true }),
  };
}
