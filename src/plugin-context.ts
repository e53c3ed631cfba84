import type { AsyncHooks, Middleware } from "graphile-config";
import type { WorkerEvents } from "./events.ts";
import type { Logger } from "./logger.ts";

/** A preset with the defaults in it, so that these options have a value. */
type ResolvedPreset = GraphileConfig.ResolvedPreset & {
  worker: GraphileConfig.WorkerOptions &
    Required<
      Pick<
        GraphileConfig.WorkerOptions,
        "schema" | "concurrentJobs" | "pollInterval" | "maxPoolSize" | "taskDirectory" | "crontabFile"
      >
    >;
};

/** What plugins know before the options are compiled. */
export interface WorkerPluginBaseContext {
  version: string;
  resolvedPreset: ResolvedPreset;
  workerSchema: string;
  escapedWorkerSchema: string;
  events: WorkerEvents;
  logger: Logger;
}

/** What plugins, hooks and event listeners know. */
export interface WorkerPluginContext extends WorkerPluginBaseContext {
  /** Highest migration id of the shared ledger that this version understands. */
  maxMigrationNumber: number;
  breakingMigrationNumbers: readonly number[];
  hooks: AsyncHooks<GraphileConfig.WorkerHooks>;
  middleware: Middleware<GraphileConfig.WorkerMiddleware>;
  /** @internal The options as they were given. */
  _rawOptions: object;
}
