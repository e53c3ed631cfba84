export type {
  ChangeJobs,
  ChangeMatchingOptions,
  ChangeMatchingResult,
  ChangeProgress,
} from "./admin/change-matching.ts";
export type { CheckPayloadsOptions, PayloadReport, UnfitJob } from "./admin/check-payloads.ts";
export type { CleanupOptions, CleanupTask } from "./admin/cleanup.ts";
export type { CheckUp, ExamineHealthOptions } from "./admin/doctor.ts";
export type { JobExplanation } from "./admin/explain-job.ts";
export type { JobAdmin } from "./admin/job-admin.ts";
export type { JobFigures, JobFiguresOptions } from "./admin/job-figures.ts";
export type { JobFilter, JobState } from "./admin/job-filter.ts";
export type { JobInspector } from "./admin/job-inspector.ts";
export type { ExplainedReason, OwnerLife, Reason } from "./admin/job-reason.ts";
export type { JobStats, JobStatsOptions, StateCounts } from "./admin/job-stats.ts";
export type { JobTimesOptions, Percentiles, TaskTimes } from "./admin/job-times.ts";
export type { JobTrends, JobTrendsOptions, TrendPoint } from "./admin/job-trends.ts";
export type { JobPage, JobScan, ListedJob, PageOptions, ScanOptions, ShownJob } from "./admin/list-jobs.ts";
export type { ListQueuesOptions, QueueStatus } from "./admin/list-queues.ts";
export type { ListWorkersOptions, WorkerStatus } from "./admin/list-workers.ts";
export type { RescheduleOptions } from "./admin/reschedule-options.ts";
export type { IndexStatesOptions } from "./admin/state-indexes.ts";
export type {
  ActionFilter,
  ActionLog,
  ActionPage,
  ActionPageOptions,
  ActionReport,
  LoggedAction,
  NewAction,
} from "./audit/action-log.ts";
export type { CallerTransaction, QueryFunction } from "./caller-transaction.ts";
export type { AddBatchJobFunction } from "./client/add-batch-job.ts";
export type { LocalQueueOptions, RefetchDelayOptions } from "./config/local-queue-options.ts";
export type {
  ExtraOptions,
  ForbiddenFlagsFn,
  RunOnceOptions,
  SharedOptions,
  WorkerOptions,
  WorkerPoolOptions,
  WorkerSharedOptions,
  WorkerUtilsOptions,
} from "./config/options.ts";
export { INFRASTRUCTURE_RESILIENT_FLAG, type RecoveryOptions } from "./config/recovery-options.ts";
export type { CancelOptions, CancelResult, JobControl } from "./control/job-control.ts";
export type { PauseAdmin, PauseOptions } from "./control/pause-admin.ts";
export { cron } from "./cron/cron.ts";
export {
  $$isParsed,
  type CronItem,
  type CronItemOptions,
  type CronMatcher,
  type ParsedCronItem,
  type ParsedCronItemOptions,
  type ParsedCronMatch,
  type PatternCronItem,
  type TimestampDigest,
} from "./cron/cron-item.ts";
export { CrontabError } from "./cron/crontab-error.ts";
export { parseCronItem, parseCronItems } from "./cron/parse-cron-item.ts";
export { parseCrontab } from "./cron/parse-crontab.ts";
export { describeDatabaseFailure } from "./db/describe-failure.ts";
export { isBadValue, isSchemaMissing, isTransient } from "./db/sqlstate.ts";
export type { KnownCrontab } from "./db/statements/cron.ts";
export { errorStack } from "./error-text.ts";
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
  toError,
} from "./errors.ts";
export type {
  CronJob,
  GlobalEventMap,
  GlobalEvents,
  JobAndCronIdentifier,
  JobAndCronIdentifierWithDetails,
  JobOutcomeName,
  WorkerEventMap,
  WorkerEvents,
} from "./events.ts";
export type {
  DebounceOptions,
  GuardOptions,
  SingletonConflict,
  SingletonOptions,
  SkippedBy,
  ThrottleOptions,
} from "./guards.ts";
export type {
  ErrorGroup,
  HistoryEntry,
  HistoryFilter,
  HistoryOutcome,
  HistoryPage,
  HistoryPageOptions,
  HistoryReader,
  JobHistoryEntry,
  JobLinks,
  LinkedJob,
  ListErrorsOptions,
} from "./history/history-reader.ts";
export type { ProgressOptions } from "./history/on-progress.ts";
export type { WaitOptions } from "./history/wait-for-job.ts";
export type {
  HookContext,
  HookName,
  InterceptorContexts,
  InterceptorName,
  InterruptionReason,
  LifecycleHook,
  LifecycleHooks,
  ObserverContexts,
  ObserverName,
  ShutdownReason,
} from "./hooks/contexts.ts";
export type { FileDetails, Writeable } from "./hooks/plugin.ts";
export { type HookPlugin, HookRegistry, type HooksInput, makeHooks } from "./hooks/registry.ts";
export type { Failure, HookResult, JobChange, JobRecoveryResult, JobScheduleResult } from "./hooks/results.ts";
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
export type { JobId } from "./job-checks.ts";
export {
  CancelJobError,
  JobCancelledError,
  JobLostError,
  RateLimitError,
  ShutdownAbortError,
  SnoozeError,
  TimeoutError,
  UnrecoverableError,
} from "./job-errors.ts";
export type { HistoryLevel, RetentionOptions } from "./kept-history.ts";
export type {
  ConcurrencyLimit,
  Fairness,
  LimitDefinition,
  PayloadPath,
  RateLimit,
  SharedLimit,
} from "./limit-options.ts";
export type {
  Limit,
  LimitAdmin,
  LimitChange,
  LimitHold,
  LimitOverride,
  LimitTarget,
  ListLimitsOptions,
  WaitingKeys,
  WaitingKeysOptions,
} from "./limits/limit-admin.ts";
export { type LogFormat, makeLogFactory } from "./log-factory.ts";
export { consoleLogFactory, type LogFunctionFactory, Logger, type LogLevel, type LogScope } from "./logger.ts";
export { describePause, type Pause, type PauseKind, type PauseTarget } from "./pause.ts";
export type { WorkerPluginBaseContext, WorkerPluginContext } from "./plugin-context.ts";
export type { JobProgress, ProgressReport, ReportedProgress } from "./progress.ts";
export { describeSweep } from "./recovery/describe-sweep.ts";
export type { ActiveWorker } from "./recovery/list-active-workers.ts";
export type { SweptJob } from "./recovery/recover-jobs.ts";
export type { DeadWorker, SweepResult } from "./recovery/sweep.ts";
export { addJobAdhoc, quickAddJob } from "./runner/add-job-adhoc.ts";
export type { CompiledSharedOptions, WorkerShared } from "./runner/compile.ts";
export { getCronItems, type WatchedCronItems } from "./runner/cron-items.ts";
export type { FinishedJob, FoundJob, PresentJob } from "./runner/find-job.ts";
export { getTasks, type WatchedTaskList } from "./runner/get-tasks.ts";
export type { AddAndWaitOptions, AddJobAndWaitFunction, JobWaiter } from "./runner/job-waiter.ts";
export { run, runOnce } from "./runner/run.ts";
export { runMigrations } from "./runner/run-migrations.ts";
export { runTaskList, runTaskListOnce } from "./runner/run-task-list.ts";
export { runWatching } from "./runner/run-watching.ts";
export type { RunnerOptions } from "./runner/runner-options.ts";
export { WorkerPreset } from "./runner/worker-preset.ts";
export type { SweepStaleWorkersOptions, WorkerSweeper } from "./runner/worker-sweeper.ts";
export {
  type JobUtils,
  type MakeWorkerUtilsOptions,
  makeWorkerUtils,
  type QueueUtils,
  type WorkerUtils,
} from "./runner/worker-utils.ts";
export {
  type EnhancedWithPgClient,
  type Helpers,
  isValidTask,
  type JobHelpers,
  type PromiseOrDirect,
  type Task,
  type TaskHelpers,
  type TaskList,
  type WithPgClient,
  type WorkerDetails,
} from "./task.ts";
export {
  type AnyTaskDefinition,
  isTaskDefinition,
  type PayloadIssue,
  type StandardSchema,
  type TaskDefinition,
  type TaskInput,
  type TaskPayload,
  type TaskResult,
} from "./task-definition.ts";
export type { BackoffFunction, BackoffOptions, Duration, TaskRunOptions } from "./task-options.ts";
export { type BatchTaskOptions, defineBatchTask, type ItemResult } from "./tasks/define-batch-task.ts";
export { defineTask, type TaskOptions } from "./tasks/define-task.ts";
export type { Upgrade } from "./tasks/fit-payload.ts";
export { type PayloadRules, payloadRulesOf } from "./tasks/payload-rules.ts";
export { TaskFileError } from "./tasks/task-file-error.ts";
export type { TaskListInput } from "./tasks/task-list-input.ts";
export { version } from "./version.ts";
export { JobFailedError, JobUnknownError, WaitTimeoutError } from "./wait-errors.ts";
export {
  type CompleteJobFunction,
  type Cron,
  type FailJobFunction,
  type GetJobFunction,
  type LocalQueueMode,
  LocalQueueModes,
  type Runner,
  type Worker,
  type WorkerPool,
} from "./worker.ts";
