import { type CleanupOptions, cleanup } from "../admin/cleanup.ts";
import { type JobInspector, makeJobInspector } from "../admin/inspect.ts";
import { type JobAdmin, makeJobAdmin } from "../admin/jobs.ts";
import { type AddBatchJobFunction, makeAddBatchJob } from "../client/add-batch-job.ts";
import type { CallerTransaction } from "../client/transaction/caller-transaction.ts";
import { executorFor } from "../client/transaction/executor-for.ts";
import type { WorkerUtilsOptions } from "../config/options.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction } from "../job.ts";
import type { Helpers } from "../task.ts";
import { InFlight } from "../util/in-flight.ts";
import { makeAdders, makeSharedAdders } from "./add-through-hooks.ts";
import { compileSharedOptions } from "./compile.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { openDatabase } from "./open-database.ts";
import { makeWorkerSweeper, type WorkerSweeper } from "./worker-sweeper.ts";

/** Adds and changes jobs. */
export interface JobUtils extends JobAdmin {
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
  addBatchJob: AddBatchJobFunction;
}

/** Puts jobs in and manages them, without running any. */
export interface WorkerUtils extends JobUtils, JobInspector, WorkerSweeper, Helpers {
  /** The same on a transaction of yours: what is done becomes true when you commit, and never if you roll back. */
  withTransaction(tx: CallerTransaction): JobUtils;
  /** Installs the schema or brings it up to date; done once already when the utils were made. */
  migrate(): Promise<void>;
  /** Forgets names that no job uses; see `CleanupOptions`. */
  cleanup(options?: CleanupOptions): Promise<void>;
  /** Waits for adds under way and closes what was opened; a pool of your own stays open. May be called twice. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Opens the database, brings its schema up to date, and gives what can be done with it. */
export async function makeWorkerUtils(options: WorkerUtilsOptions): Promise<WorkerUtils> {
  const compiled = compileSharedOptions(options, { label: "WorkerUtils" });
  const { settings, ctx, logger } = compiled;
  const { database, release: close } = openDatabase(compiled);
  try {
    await migrateSchema(database, ctx);
  } catch (error) {
    await close();
    throw error;
  }

  const adds = new InFlight();
  const adders = makeSharedAdders(database, compiled);
  const addJob = adds.track(adders.addJob) as AddAnyJobFunction;
  const release = async (): Promise<void> => {
    await adds.settled();
    await close();
  };
  return {
    ...makeJobAdmin(database),
    ...makeJobInspector(database),
    ...makeWorkerSweeper(compiled, database),
    addJob,
    addJobs: adds.track(adders.addJobs) as AddAnyJobsFunction,
    addBatchJob: makeAddBatchJob(addJob),
    withTransaction(tx) {
      const executor = executorFor(tx, settings.schema);
      const inside = makeAdders(executor, compiled);
      return { ...makeJobAdmin(executor), ...inside, addBatchJob: makeAddBatchJob(inside.addJob) };
    },
    logger,
    withPgClient: database.withPgClient,
    migrate: () => migrateSchema(database, ctx),
    cleanup: (cleanupOptions) => cleanup(database, cleanupOptions),
    release,
    [Symbol.asyncDispose]: release,
  };
}
