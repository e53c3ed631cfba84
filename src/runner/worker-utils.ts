import type { PoolClient } from "pg";
import { type CleanupOptions, cleanup } from "../admin/cleanup.ts";
import { type JobAdmin, makeJobAdmin } from "../admin/job-admin.ts";
import type { JobFilter } from "../admin/job-filter.ts";
import { type JobInspector, makeJobInspector } from "../admin/job-inspector.ts";
import { eachJobId, getJob } from "../admin/list-jobs.ts";
import { type IndexStatesOptions, indexStates } from "../admin/state-indexes.ts";
import { type ActionLog, makeActionLog } from "../audit/action-log.ts";
import type { CallerTransaction } from "../caller-transaction.ts";
import { type AddBatchJobFunction, makeAddBatchJob } from "../client/add-batch-job.ts";
import { type Executor, executorFor } from "../client/transaction/executor-for.ts";
import type { WorkerUtilsOptions } from "../config/options.ts";
import { type JobControl, makeJobControl } from "../control/job-control.ts";
import { makePauseAdmin, type PauseAdmin } from "../control/pause-admin.ts";
import type { Database } from "../db/database.ts";
import { describeMigration } from "../db/migrate.ts";
import { insufficientPrivilege } from "../db/sqlstate.ts";
import { codeOf } from "../errors.ts";
import { type HistoryReader, makeHistoryReader } from "../history/history-reader.ts";
import { JobWatch } from "../history/job-watch.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction } from "../job.ts";
import type { JobId } from "../job-checks.ts";
import { type LimitAdmin, makeLimitAdmin } from "../limits/limit-admin.ts";
import { buildLimitIndexes } from "../limits/limit-maintenance.ts";
import type { EnhancedWithPgClient, Helpers, PromiseOrDirect } from "../task.ts";
import { InFlight } from "../util/in-flight.ts";
import { compileSharedOptions } from "./compile.ts";
import { type FoundJob, makeFindJob } from "./find-job.ts";
import { makeAdders, makeSharedAdders } from "./hooks/adders.ts";
import { type JobWaiter, makeJobWaiter } from "./job-waiter.ts";
import { findListenOn } from "./listen-on.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { openDatabase } from "./open-database.ts";
import { makeWorkerSweeper, type WorkerSweeper } from "./worker-sweeper.ts";

/** Adds and changes jobs. */
export interface JobUtils extends JobAdmin, JobControl<JobFilter> {
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
  addBatchJob: AddBatchJobFunction;
}

/** What Graphile Worker's utilities have, for code and mocks written for them; `makeWorkerUtils` returns more. */
export interface WorkerUtils
  extends Helpers,
    Pick<JobAdmin, "completeJobs" | "permanentlyFailJobs" | "rescheduleJobs" | "forceUnlockWorkers"> {
  migrate(): Promise<void>;
  cleanup(options: CleanupOptions): Promise<void>;
  release(): PromiseOrDirect<void>;
}

/** Adds and manages jobs without running any; returned by `makeWorkerUtils`. */
export interface QueueUtils
  extends WorkerUtils,
    JobUtils,
    JobInspector,
    HistoryReader,
    JobWaiter,
    PauseAdmin,
    ActionLog,
    LimitAdmin,
    WorkerSweeper {
  /** One job with its payload and its attempts, wherever it is: waiting, running, or finished and kept in history. Null if nothing is known. */
  getJob(id: JobId): Promise<FoundJob | null>;
  readonly withPgClient: EnhancedWithPgClient;
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
  /** The schema that holds the jobs. */
  readonly schema: string;
  /** The same methods on your own transaction: they take effect when you commit, and never if you roll back. */
  withTransaction(tx: CallerTransaction): JobUtils;
  /** Runs the callback in a transaction: commits everything it adds and changes through `jobs` and `client`, or nothing if it throws. */
  transaction<T>(work: (jobs: JobUtils, client: PoolClient) => Promise<T>): Promise<T>;
  /** Returns the SQL that `migrate` would run now; empty if the schema is up to date. */
  planMigration(): Promise<string>;
  /** Installs the schema or brings it up to date. `makeWorkerUtils` has already done so once. */
  migrate(): Promise<void>;
  /** Deletes names of tasks and queues that no job uses, and permanently failed jobs if asked to. */
  cleanup(options?: CleanupOptions): Promise<void>;
  /** Builds small indexes of running and of failed jobs, so that they are found among millions that wait; false, and nothing is done, if the table is small. A dashboard does this by itself. */
  indexStates(options?: IndexStatesOptions): Promise<boolean>;
  /** Waits for pending adds, ends what waits for jobs, and closes the connections; your own `pgPool` stays open. May be called twice. */
  release(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface MakeWorkerUtilsOptions {
  /** False leaves the schema as it is, for code that only reads. */
  readonly migrate?: boolean | undefined;
  /** Milliseconds after which a statement is stopped and fails, for pages that must not wait; no limit, if left out. Migrations take their time. */
  readonly statementTimeout?: number | undefined;
  /** Milliseconds for which a connection of its own pool is kept that is not in use; 10,000 if left out. */
  readonly idleTimeout?: number | undefined;
}

/** Connects to the database, brings its schema up to date, and returns the functions that add and manage jobs. */
export async function makeWorkerUtils(
  options: WorkerUtilsOptions,
  { migrate = true, statementTimeout, idleTimeout }: MakeWorkerUtilsOptions = {},
): Promise<QueueUtils> {
  const compiled = compileSharedOptions(options, { label: "WorkerUtils" });
  const { settings, ctx, logger, safeLogger } = compiled;
  const {
    database,
    pool,
    isOurs,
    release: close,
  } = openDatabase(compiled, {
    statementTimeoutMs: statementTimeout,
    idleMs: idleTimeout,
  });
  try {
    if (migrate) await migrateSchema(database, ctx);
  } catch (error) {
    await close();
    throw error;
  }

  const adds = new InFlight();
  const adders = makeSharedAdders(database, compiled);
  const addJob = adds.track(adders.addJob) as AddAnyJobFunction;
  const watch = new JobWatch({ database, listenOn: findListenOn(settings, pool, isOurs), logger: safeLogger });
  const release = async (): Promise<void> => {
    await adds.settled();
    await watch.close(new Error("The utilities were released, so the job is not waited for any more."));
    await close();
  };
  const jobsOn = (executor: Executor): JobUtils => {
    const inside = makeAdders(executor, compiled);
    return {
      ...makeJobAdmin(executor),
      ...controlOf(executor),
      ...inside,
      addBatchJob: makeAddBatchJob(inside.addJob),
    };
  };
  const history = makeHistoryReader(database);
  return {
    ...makeJobAdmin(database),
    ...controlOf(database),
    ...makeJobInspector(database, settings.recovery ? settings.recovery.sweepThreshold : undefined),
    ...history,
    ...makeJobWaiter(watch, addJob),
    getJob: makeFindJob(database, (id) => getJob(database, id), history),
    ...makePauseAdmin(database, settings),
    ...makeActionLog(database),
    ...makeLimitAdmin(database),
    ...makeWorkerSweeper(compiled, database),
    addJob,
    addJobs: adds.track(adders.addJobs) as AddAnyJobsFunction,
    addBatchJob: makeAddBatchJob(addJob),
    withTransaction: (tx) => jobsOn(executorFor(tx, settings.schema)),
    transaction: (work) => database.transaction((tx) => tx.withPgClient((client) => work(jobsOn(tx), client))),
    planMigration: () => database.withPgClient((client) => describeMigration({ client, schema: settings.schema })),
    schema: settings.schema,
    logger,
    withPgClient: database.withPgClient,
    async migrate() {
      await migrateSchema(database, ctx);
      // A worker whose role does not own the tables leaves them to whoever migrates.
      await buildLimitIndexes({ database, logger: safeLogger }).catch((error: unknown) => {
        if (codeOf(error) !== insufficientPrivilege) throw error;
      });
    },
    cleanup: (cleanupOptions) => cleanup(database, cleanupOptions),
    indexStates: (indexOptions) => indexStates(database, safeLogger, indexOptions),
    release,
    [Symbol.asyncDispose]: release,
  };
}

function controlOf(database: Pick<Database, "run">): JobControl<JobFilter> {
  return makeJobControl({ database, findIds: (filter: JobFilter) => eachJobId(database, filter, 1_000) });
}
