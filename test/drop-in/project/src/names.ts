/* Every public name of the library, used the way programs and tests use it. Nothing here runs: the compiler is the judge. */
import { EventEmitter } from "node:events";
import {
  $$isParsed,
  type AddJobFunction,
  type AddJobsFunction,
  type AddJobsJobSpec,
  addJobAdhoc,
  type CleanupOptions,
  type CleanupTask,
  type CompiledSharedOptions,
  type CompleteJobFunction,
  type Cron,
  type CronItem,
  type CronItemOptions,
  type CronJob,
  type CronMatcher,
  consoleLogFactory,
  type DbJob,
  type DbJobSpec,
  type EnhancedWithPgClient,
  type FailJobFunction,
  type FileDetails,
  type ForbiddenFlagsFn,
  type GetJobFunction,
  type GlobalEventMap,
  type GlobalEvents,
  getCronItems,
  getTasks,
  type Helpers,
  isValidTask,
  type Job,
  type JobAndCronIdentifier,
  type JobAndCronIdentifierWithDetails,
  type JobHelpers,
  type KnownCrontab,
  type LocalQueueMode,
  LocalQueueModes,
  type LogFunctionFactory,
  Logger,
  type LogLevel,
  makeWorkerUtils,
  type ParsedCronItem,
  type ParsedCronItemOptions,
  type ParsedCronMatch,
  type PromiseOrDirect,
  parseCronItem,
  parseCronItems,
  parseCrontab,
  quickAddJob,
  type Runner,
  type RunnerOptions,
  type RunOnceOptions,
  run,
  runMigrations,
  runOnce,
  runTaskList,
  runTaskListOnce,
  type SharedOptions,
  type Task,
  type TaskList,
  type TaskSpec,
  type TimestampDigest,
  type WatchedCronItems,
  type WatchedTaskList,
  type WithPgClient,
  type Worker,
  type WorkerEventMap,
  type WorkerEvents,
  type WorkerOptions,
  type WorkerPluginBaseContext,
  type WorkerPluginContext,
  type WorkerPool,
  type WorkerPoolOptions,
  WorkerPreset,
  type WorkerShared,
  type WorkerSharedOptions,
  type WorkerUtils,
  type WorkerUtilsOptions,
  type Writeable,
} from "graphile-worker";
import type { Pool, PoolClient } from "pg";

declare const pgPool: Pool;
declare const client: PoolClient;
declare const job: Job;

/* Mocks as tests write them. */
const logger = new Logger(consoleLogFactory);
const withPgClient: WithPgClient = (callback) => callback(client);
const enhanced: EnhancedWithPgClient = Object.assign(withPgClient, { withRetries: withPgClient });
export const helpers: JobHelpers = {
  logger,
  job,
  withPgClient,
  addJob: async () => job,
  addJobs: async () => [job],
  query: (text, values) => client.query(text, values),
  getQueueName: () => null,
  abortSignal: new AbortController().signal,
  abortPromise: Promise.resolve(),
};
export const utils: WorkerUtils = {
  logger,
  withPgClient,
  addJob: async () => job,
  addJobs: async () => [job],
  release: () => undefined,
  migrate: async () => undefined,
  completeJobs: async () => [job],
  permanentlyFailJobs: async () => [job],
  rescheduleJobs: async () => [job],
  forceUnlockWorkers: async () => undefined,
  cleanup: async () => undefined,
};
export const plainHelpers: Helpers = helpers;
/* Functions that tests declare to have the original's types, and hand in. */
const mockAddJob: AddJobFunction = async () => job;
const mockAddJobs: AddJobsFunction = async () => [job];
export const mockedHelpers: JobHelpers = { ...helpers, addJob: mockAddJob, addJobs: mockAddJobs };
export const mockedUtils: WorkerUtils = { ...utils, addJob: mockAddJob, addJobs: mockAddJobs };

/* Jobs. */
export const isAvailable: boolean = job.is_available;
export const dbJob: DbJob = job;
export const dbSpec: DbJobSpec<"hello"> = { identifier: "hello", payload: { name: "Ada" }, run_at: null };
export const specs: AddJobsJobSpec[] = [{ identifier: "a", payload: {} }];
export const spec: TaskSpec = { jobKeyMode: "preserve_run_at", jobKey: "k" };
export const tasks: TaskList = { hello: async (payload: { name: string }) => logger.info(payload.name) };
export const task: Task = async (payload, { abortPromise, query }) => {
  await Promise.race([abortPromise, query<{ id: number }>("select $1::int as id", [payload])]);
};
export const called: PromiseOrDirect<unknown> = task({}, helpers);
export const isTask: boolean = isValidTask(tasks.hello);
export const cleanups: CleanupTask[] = ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS", "DELETE_PERMAFAILED_JOBS"];
export const cleanupOptions: CleanupOptions = { tasks: cleanups, taskIdentifiersToKeep: ["a"] };
export const flags: ForbiddenFlagsFn = async () => ["a"];
export const complete: CompleteJobFunction = ({ id }) => logger.info(id);
export const fail: FailJobFunction = ({ job: { id }, message, replacementPayload }) =>
  logger.info(`${id} ${message} ${replacementPayload?.length}`);
export const getJob: GetJobFunction = async (workerId, flagsToSkip) =>
  workerId === "" || flagsToSkip === null ? undefined : job;

/* Cron. */
export const digest: TimestampDigest = { min: 0, hour: 4, date: 1, month: 1, dow: 0 };
export const matcher: CronMatcher = ({ min }) => min === 0;
export const itemOptions: CronItemOptions = { backfillPeriod: 0, maxAttempts: 1, jobKeyMode: "replace" };
export const item: CronItem = { task: "hello", match: matcher, options: itemOptions, payload: { a: 1 } };
export const parsed: ParsedCronItem[] = [...parseCronItems([item]), ...parseCrontab("* * * * * hello")];
export const single: ParsedCronItem = parseCronItem(item);
export const isParsed: true = single[$$isParsed];
export const parsedOptions: ParsedCronItemOptions = single.options;
export const ranges: ParsedCronMatch = { minutes: [0], hours: [4], dates: [1], months: [1], dows: [0] };
export const describeCronJob = ({ payload: { _cron }, runAt, jobKey }: CronJob): string =>
  `${_cron.ts} ${_cron.backfilled === true} ${runAt} ${jobKey}`;
export const known: KnownCrontab = { identifier: "a", known_since: new Date(), last_execution: null };
export const scheduled = ({ job: { task: name }, identifier }: JobAndCronIdentifier): string => name + identifier;
export const missed = (details: JobAndCronIdentifierWithDetails): Date | null =>
  details.last_execution ?? details.known_since;

/* Options and running. */
const events = new EventEmitter() as WorkerEvents;
export const shared: SharedOptions = { pgPool, logger, events, forbiddenFlags: flags, preset: WorkerPreset };
export const workerShared: WorkerSharedOptions = { ...shared, pollInterval: 1 };
export const once: RunOnceOptions = { ...shared, concurrency: 1, workerId: "a" };
export const poolOptions: WorkerPoolOptions = { ...workerShared, concurrency: 1, noHandleSignals: true };
export const utilsOptions: WorkerUtilsOptions = shared;
export const runnerOptions: RunnerOptions = { ...poolOptions, taskList: tasks, parsedCronItems: parsed };
export async function start(): Promise<Runner> {
  await runMigrations({ connectionString: "postgres:///db", taskList: tasks });
  await runMigrations(runnerOptions);
  await runOnce(runnerOptions, tasks);
  const pool: WorkerPool = runTaskList(poolOptions, tasks, pgPool);
  const ended: Promise<number> = pool.then(() => 1);
  ended.finally(() => undefined).catch(() => undefined);
  await pool.gracefulShutdown("over");
  const { forceFailedJobs } = await pool.forcefulShutdown("over");
  const describe = (worker: Worker): string => `${worker.workerId} ${worker.getActiveJob()?.id}`;
  logger.info(`${forceFailedJobs.length} ${pool.worker && describe(pool.worker)} ${pool.abortSignal.aborted}`);
  await runTaskListOnce(once, tasks, client);
  await pgPool.connect();
  const added: Job = await quickAddJob(utilsOptions, "hello", { name: "Ada" }, spec);
  await addJobAdhoc(utilsOptions, "hello", { name: added.id });
  const made: WorkerUtils = await makeWorkerUtils(utilsOptions);
  const addJob: AddJobFunction = made.addJob;
  const addJobs: AddJobsFunction = made.addJobs;
  await addJob("a", {});
  await addJobs(specs);
  await made.cleanup(cleanupOptions);
  await made.release();
  const watched: WatchedTaskList = await getTasks(shared, "./tasks");
  const cron: WatchedCronItems = await getCronItems(shared, "./crontab");
  return run({ ...runnerOptions, taskList: watched.tasks }, undefined, cron.items);
}
export const workerOptions = (abortSignal: AbortSignal, workerPool: WorkerPool): WorkerOptions => ({
  ...workerShared,
  abortSignal,
  workerPool,
  workerId: "a",
  autostart: false,
});

/* Events, logging, plugins. */
export const onJob = ({ job: { id }, worker, ctx }: WorkerEventMap["job:start"]): string =>
  `${id} ${worker.workerId} ${ctx.resolvedPreset.worker.schema} ${ctx.resolvedPreset.worker.concurrentJobs}`;
events.on("job:start", onJob);
events.on("cron:starting", ({ cron }: { cron: Cron }) => void cron.release());
export const onSignal = ({ signal }: GlobalEventMap["gracefulShutdown"]): string => signal;
export const globalEvents = (emitter: GlobalEvents): unknown => emitter.on("gracefulShutdown", onSignal);
export const modes: LocalQueueMode[] = [LocalQueueModes.POLLING, LocalQueueModes.WAITING];
export const factory: LogFunctionFactory = (scope) => (level, message, meta) =>
  console.log(level satisfies LogLevel, scope.label, message, meta);
export const useShared = ({ compiledSharedOptions, query }: WorkerShared): unknown[] => [compiledSharedOptions, query];
export const rawOptionsOf = ({ _rawOptions }: CompiledSharedOptions<RunnerOptions>): RunnerOptions => _rawOptions;
export const writeable: Writeable<{ readonly a: number }> = { a: 1 };
export const nameOf = ({ baseName, extension }: FileDetails): string => baseName + extension;
export const plugin: GraphileConfig.Plugin = {
  name: "names",
  version: "0.0.0",
  worker: {
    middleware: {
      bootstrap: (next, event: GraphileWorker.BootstrapEvent) => (event.ctx.workerSchema === "" ? undefined : next()),
      migrate: (next, event: GraphileWorker.MigrateEvent) => (event.postgresVersion > 0 ? next() : undefined),
      poolGracefulShutdown: (next, event: GraphileWorker.PoolGracefulShutdownEvent) =>
        event.message === "" ? undefined : next(),
      poolForcefulShutdown: (next, event: GraphileWorker.PoolForcefulShutdownEvent) => {
        logger.info(event.workerPool.id);
        return next();
      },
      poolWorkerPrematureExit: (next, event: GraphileWorker.PoolWorkerPrematureExitEvent) => {
        event.replaceWithNewWorker();
        next();
      },
    },
    hooks: {
      init: (ctx: WorkerPluginContext) => logger.info(ctx.escapedWorkerSchema),
      premigrate: async (ctx, { client: own, scratchpad }) => {
        scratchpad.version = ctx.version;
        await own.query("select 1");
      },
      startWorker: async (_ctx, event) => {
        event.flagsToSkip = ["a"];
      },
    },
  },
};
export const onInit = ({ ctx }: GraphileWorker.InitEvent): WorkerPluginBaseContext => ctx;
export const process = (ctx: WorkerPluginContext, worker: Worker): unknown =>
  ctx.hooks.process("stopWorker", { worker, withPgClient: enhanced });
