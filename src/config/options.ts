/**
 * Every option is written here once: its name, doc comment, type, check and default. Types, defaults, checks, suggestions for
 * misspelt names, settings and the reference follow from these tables. A table holds what certain functions take; groups such
 * as `recovery` have tables of their own beside this file, and what needs the types of features is in runner/runner-options.ts.
 */

import type { Pool } from "pg";
import type { WorkerEvents } from "../events.ts";
import type { Meter } from "../hooks/meter.ts";
import type { HooksInput } from "../hooks/registry.ts";
import { defaultHistory } from "../kept-history.ts";
import type { Logger } from "../logger.ts";
import type { PromiseOrDirect } from "../task.ts";
import type { WorkerPool } from "../worker.ts";
import {
  aBoolean,
  aConcurrency,
  aConnectionString,
  aCount,
  aDelay,
  aDelayOrNever,
  aGroup,
  aHistoryLevel,
  aNumber,
  anInterval,
  anObject,
  anything,
  aRetention,
  aSchemaName,
  aText,
  aTimeZone,
  extensions,
  sharedLimits,
  taskOptionsByName,
  texts,
} from "./kinds.ts";
import { type LocalQueueOptions, localQueueTable } from "./local-queue-options.ts";
import { defaultsOf, directOption, type Given, option, presetOption, renamedOption } from "./option.ts";
import { aRecovery, type RecoveryOptions } from "./recovery-options.ts";

/** Decides, before each claim, which flags this worker leaves alone. */
export type ForbiddenFlagsFn = () => PromiseOrDirect<string[] | null>;

/** For everything that reaches the database. */
export const sharedTable = {
  /** Hands messages to your own logging; the console's, if left out. */
  logger: option(anObject<Logger>("Logger")),
  /** Schema that holds the job tables; GRAPHILE_WORKER_SCHEMA or `graphile_worker`, if left out. */
  schema: option(aSchemaName, { default: "graphile_worker" }),
  /** Where the database is: a URL, or the name of a database on the default host; DATABASE_URL, if left out. */
  connectionString: option(aConnectionString),
  /** Connections in the pool we make, at most. */
  maxPoolSize: option(aCount, { default: 10 }),
  /** Your own pool; it stays yours and is never ended. */
  pgPool: directOption(anything<Pool>("Pool")),
  /** Set this behind a pooler that cannot keep prepared statements. */
  noPreparedStatements: renamedOption(aBoolean, { default: false, presetName: "preparedStatements", isNegated: true }),
  /** Jobs with any of these flags are left alone. */
  forbiddenFlags: directOption(anything<null | string[] | ForbiddenFlagsFn>("null | string[] | ForbiddenFlagsFn")),
  /** Your own emitter, to hear events from the very start. */
  events: option(anObject<WorkerEvents>("WorkerEvents")),
  /** Takes the time from this process and not from the database. */
  useNodeTime: option(aBoolean, { default: false }),
  /** Milliseconds between sweeps for stale locks, at least. */
  minResetLockedInterval: option(anInterval, { default: 8 * 60_000 }),
  /** Milliseconds between sweeps for stale locks, at most. */
  maxResetLockedInterval: option(anInterval, { default: 10 * 60_000 }),
  /** A preset to start from; options given here directly are stronger. */
  preset: directOption(anything<GraphileConfig.Preset>("GraphileConfig.Preset")),
  /** Milliseconds after the start of a graceful shutdown until the `abortSignal` of running jobs fires; `Infinity`: never. */
  gracefulShutdownAbortTimeout: option(aDelayOrNever, { default: 5_000 }),
};

/** What Hathi offers beyond Graphile Worker, for everything that runs jobs; the settings of `recovery` may stand beside these. */
export const extraTable = {
  /** Milliseconds a graceful shutdown waits for running jobs before they are returned; no limit, if left out. */
  shutdownGracePeriod: option(aDelay),
  /** Milliseconds an interrupted job waits before it may run again. */
  interruptedJobRetryDelay: option(aDelay, { default: 30_000 }),
  /** False: no LISTEN, work is found by polling only. */
  useNotifications: option(aBoolean, { default: true }),
  /** A direct line to the database for LISTEN, past a pooler that would swallow it. */
  listenConnectionString: option(aConnectionString),
  /** If given, only jobs with at least one of these flags are run. */
  acceptedFlags: option(texts),
  /** The time zone of crontab entries that name none; an IANA name such as `Europe/Berlin`. */
  timeZone: option(aTimeZone, { default: "UTC" }),
  /** True: the payloads of jobs are handed to the logger and written into JSON logs; they may contain secrets. */
  logPayloads: option(aBoolean, { default: false }),
  /** Recovers the jobs of workers that died; `true`, or settings (which switch it on). */
  recovery: option(aRecovery),
  /** Milliseconds a breaking migration waits for workers that are too old for it; four hours, if left out. */
  maxMigrationWaitTime: option(aDelay),
  /** Your own state, handed to every task as `helpers.context`. */
  context: option(anObject<GraphileWorker.Context>("GraphileWorker.Context")),
  /** How the jobs of tasks run, by the tasks' names: `timeout`, `abortGrace`, `backoff` and more. Stronger than what tasks say themselves. */
  taskOptions: option(taskOptionsByName),
  /** Limits that several tasks share, by name: `{ stripe: { concurrency: 10 } }`. A task names those it obeys in its option `limits`. */
  limits: option(sharedLimits),
  /** What is kept of finished jobs: nothing, how each attempt ended, or payloads, too. A task's own option is stronger. */
  history: option(aHistoryLevel, { default: defaultHistory }),
  /** How long history is kept: `{ completed: "1d", failed: "14d" }`. */
  retention: option(aRetention, { default: {} }),
  /** Parts of payloads that are not kept, as paths: `password`, `user.email`, `*.password` (any one key), `**.password` (at any depth). */
  redact: option(texts, { default: [] }),
  /** Functions to call along a job's way: by name, as a registry (`makeHooks`), as plugins, or an array of these. */
  hooks: option(anObject<HooksInput>("HooksInput")),
  /** The version of your app, so that the dashboard tells its deploys apart; what npm says (`npm_package_version`), if left out. */
  appVersion: option(aText),
  /** Measures the worker: what `makeMetrics` of `hathi/metrics` gives. */
  metrics: option(anObject<Meter>("Metrics")),
};

/** For everything that keeps running. */
export const workerSharedTable = {
  /** Milliseconds between scans for work when no notification arrives. */
  pollInterval: option(anInterval, { default: 2_000 }),
};

/** For a pool of workers. */
export const poolTable = {
  /** How many jobs run at once in this process. */
  concurrency: renamedOption(aConcurrency, { default: 1, presetName: "concurrentJobs" }),
  /** Leaves the process's signals alone. */
  noHandleSignals: directOption(anything<boolean>("boolean")),
};

/** For a single worker. */
export const singleTable = {
  /** Names the worker; random, if left out. */
  workerId: directOption(anything<string>("string")),
  abortSignal: directOption(anything<AbortSignal>("AbortSignal")),
  workerPool: directOption(anything<WorkerPool>("WorkerPool")),
  /** False: waits until it is started. */
  autostart: directOption(anything<boolean>("boolean")),
};

/** Where tasks and recurring jobs are found. */
export const filesTable = {
  /** Folder of task files, one per task. */
  taskDirectory: option(aText, { default: "tasks" }),
  /** Path of a crontab. The default one is read if it exists. */
  crontabFile: option(aText, { default: "crontab" }),
};

/** What stands at `preset.worker` only. */
export const presetTable = {
  /** Extensions of task modules, the first that exists wins. */
  fileExtensions: presetOption(extensions, { default: [".js", ".cjs", ".mjs", ".ts", ".mts"] }),
  /** Milliseconds in which queries for queue names are gathered; no timer, if negative. */
  getQueueNameBatchDelay: presetOption(aNumber, { default: 50 }),
  /** How far ahead a pool claims; it decides for itself, if left out. */
  localQueue: presetOption(aGroup<typeof localQueueTable, LocalQueueOptions>("LocalQueueOptions", localQueueTable), {
    default: defaultsOf(localQueueTable),
  }),
  /** Milliseconds in which completed jobs are gathered into one write; no timer, if negative. */
  completeJobBatchDelay: presetOption(aNumber, { default: -1 }),
  /** Milliseconds in which failed jobs are gathered into one write; no timer, if negative. */
  failJobBatchDelay: presetOption(aNumber, { default: -1 }),
};

/** What everything that reaches the database can be told. */
export interface SharedOptions extends Given<typeof sharedTable> {}

/** What Hathi offers beyond Graphile Worker; each key also stands at `preset.worker`. */
export interface ExtraOptions extends RecoveryOptions, Given<typeof extraTable> {}

/** For everything that runs jobs. */
export interface WorkerSharedOptions extends SharedOptions, ExtraOptions, Given<typeof workerSharedTable> {}

/** For `runTaskList`. */
export interface WorkerPoolOptions extends WorkerSharedOptions, Given<typeof poolTable> {}

type WithSignals = Pick<Given<typeof poolTable>, "noHandleSignals">;

/** For `runTaskListOnce`. */
export interface RunOnceOptions
  extends SharedOptions,
    ExtraOptions,
    Pick<Given<typeof singleTable>, "workerId">,
    WithSignals {
  concurrency?: 1;
}

/** For a single worker. */
export interface WorkerOptions extends WorkerSharedOptions, Given<typeof singleTable>, WithSignals {}

/** For `makeWorkerUtils`, `addJobAdhoc` and `runMigrations`. */
export interface WorkerUtilsOptions
  extends SharedOptions,
    Pick<ExtraOptions, "hooks" | "context" | "metrics" | "useNotifications" | "listenConnectionString"> {}
