export type { CleanupOptions, CleanupTask } from "./admin/cleanup.ts";
export type { CheckUp } from "./admin/doctor.ts";
export type { JobExplanation } from "./admin/explain-job.ts";
export type { JobInspector } from "./admin/inspect.ts";
export type { JobFilter, JobState } from "./admin/job-filter.ts";
export type { JobStats, JobStatsOptions, StateCounts } from "./admin/job-stats.ts";
export type { JobAdmin } from "./admin/jobs.ts";
export type { JobPage, ListedJob, ListJobsOptions, ShownJob } from "./admin/list-jobs.ts";
export type { ListQueuesOptions, QueueStatus } from "./admin/list-queues.ts";
export type { WorkerStatus } from "./admin/list-workers.ts";
export type { ExplainedReason, OwnerLife, Reason } from "./admin/reason.ts";
export type { RescheduleOptions } from "./admin/reschedule-options.ts";
export type { AddBatchJobFunction } from "./client/add-batch-job.ts";
export type { CallerTransaction, QueryFunction } from "./client/transaction/caller-transaction.ts";
export type { ExtraOptions, RecoveryOptions } from "./config/extra-options.ts";
export type {
  ForbiddenFlagsFn,
  RunOnceOptions,
  SharedOptions,
  WorkerOptions,
  WorkerPoolOptions,
  WorkerSharedOptions,
  WorkerUtilsOptions,
} from "./config/options.ts";
export type { LocalQueueOptions, RefetchDelayOptions } from "./config/preset-options.ts";
export { cron } from "./cron/cron.ts";
export {
  $$isParsed,
  type CronItem,
  type CronItemOptions,
  type CronMatcher,
  type ParsedCronItem,
  type ParsedCronItemOptions,
  type ParsedCronMatch,
  type TimestampDigest,
} from "./cron/cron-item.ts";
export { CrontabError } from "./cron/crontab-error.ts";
export { parseCronItem, parseCronItems } from "./cron/parse-cron-item.ts";
export { parseCrontab } from "./cron/parse-crontab.ts";
export {
  ConfigError,
  HathiError,
  HookError,
  JobSkippedError,
  JobSpecError,
  PayloadError,
  SchemaTooNewError,
  SchemaTooOldError,
  ShutdownError,
} from "./errors.ts";
export type {
  CronJob,
  GlobalEventMap,
  GlobalEvents,
  JobAndCronIdentifier,
  JobAndCronIdentifierWithDetails,
  WorkerEventMap,
  WorkerEvents,
} from "./events.ts";
export { type HookPlugin, HookRegistry, type HooksInput, makeHooks } from "./hook-registry.ts";
export type { FileDetails, WorkerPluginBaseContext, WorkerPluginContext, Writeable } from "./hooks.ts";
export type {
  AddAnyJobFunction,
  AddAnyJobsFunction,
  AddJobFunction,
  AddJobsFunction,
  AddJobsJobSpec,
  AnyJobSpec,
  DbJob,
  DbJobSpec,
  Job,
  JobKeyMode,
  TaskSpec,
} from "./job.ts";
export type {
  Failure,
  HookContext,
  HookName,
  HookResult,
  InterceptorContexts,
  InterceptorName,
  InterruptionReason,
  JobChange,
  JobRecoveryResult,
  JobScheduleResult,
  LifecycleHook,
  LifecycleHooks,
  ObserverContexts,
  ObserverName,
  ShutdownReason,
} from "./lifecycle.ts";
export { consoleLogFactory, type LogFunctionFactory, Logger, type LogLevel, type LogScope } from "./logger.ts";
export type { ActiveWorker } from "./recovery/list-active-workers.ts";
export type { DeadWorker, SweepResult, SweptJob } from "./recovery/sweep.ts";
export { addJobAdhoc, quickAddJob } from "./runner/add-job-adhoc.ts";
export type { CompiledSharedOptions } from "./runner/compile.ts";
export { getCronItems, type WatchedCronItems } from "./runner/cron-items.ts";
export { getTasks, type WatchedTaskList } from "./runner/get-tasks.ts";
export { run, runOnce } from "./runner/run.ts";
export { runMigrations } from "./runner/run-migrations.ts";
export { runTaskList, runTaskListOnce } from "./runner/run-task-list.ts";
export type { RunnerOptions } from "./runner/runner-options.ts";
export { WorkerPreset } from "./runner/worker-preset.ts";
export type { SweepStaleWorkersOptions, WorkerSweeper } from "./runner/worker-sweeper.ts";
export { type JobUtils, makeWorkerUtils, type WorkerUtils } from "./runner/worker-utils.ts";
export {
  type EnhancedWithPgClient,
  type Helpers,
  isValidTask,
  type JobHelpers,
  type PromiseOrDirect,
  type Task,
  type TaskList,
  type WithPgClient,
} from "./task.ts";
export {
  type AnyTaskDefinition,
  isTaskDefinition,
  type PayloadIssue,
  type StandardSchema,
  type TaskDefinition,
  type TaskInput,
  type TaskPayload,
} from "./task-definition.ts";
export { type BatchTaskOptions, defineBatchTask, type ItemResult } from "./tasks/define-batch-task.ts";
export { defineTask, type TaskOptions } from "./tasks/define-task.ts";
export type { TaskListInput } from "./tasks/defined-names.ts";
export type { Upgrade } from "./tasks/fit-payload.ts";
export {
  type Cron,
  type LocalQueueMode,
  LocalQueueModes,
  type Runner,
  type Worker,
  type WorkerPool,
} from "./worker.ts";
