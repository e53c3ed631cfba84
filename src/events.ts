import type { EventEmitter } from "node:events";
import type { Notification, PoolClient } from "pg";
import type { Job, TaskSpec } from "./job.ts";
import type { Pause } from "./pause.ts";
import type { WorkerPluginContext } from "./plugin-context.ts";
import type { JobProgress } from "./progress.ts";
import type { TaskList } from "./task.ts";
import type { Cron, LocalQueue, LocalQueueMode, Worker, WorkerPool } from "./worker.ts";

/** A job that a crontab entry asks for. */
export interface CronJob {
  task: string;
  payload: { _cron: { ts: string; backfilled?: boolean }; [key: string]: unknown };
  queueName?: string;
  runAt: string;
  maxAttempts?: number;
  priority?: number;
  jobKey?: string;
  jobKeyMode?: TaskSpec["jobKeyMode"];
  flags?: string[];
}

export interface JobAndCronIdentifier {
  job: CronJob;
  identifier: string;
}

export interface JobAndCronIdentifierWithDetails extends JobAndCronIdentifier {
  known_since: Date;
  last_execution: Date | null;
}

interface PoolEvent {
  workerPool: WorkerPool;
}
/** `pool` is the older name of `workerPool`. */
interface ShutdownEvent extends PoolEvent {
  /** @deprecated Use `workerPool`. */
  pool: WorkerPool;
}
interface WorkerEvent {
  worker: Worker;
}
interface JobEvent extends WorkerEvent {
  job: Job;
}
interface JobErrorEvent extends JobEvent {
  durationMs: number;
  error: Error;
  batchJobErrors?: Error[];
}
interface LocalQueueEvent {
  localQueue: LocalQueue;
}
interface CronEvent {
  cron: Cron;
}

/** How a job ended, or its attempt. */
export type JobOutcomeName = "succeeded" | "failed" | "permanentlyFailed" | "snoozed" | "cancelled";

/** Every event and its fields. Each payload also carries `ctx`. */
export interface HathiEventMap {
  /** A pool was made; it is about to claim jobs. */
  "pool:create": PoolEvent;
  /** A connection for LISTEN is being made, after so many failed attempts. */
  "pool:listen:connecting": PoolEvent & { attempts: number };
  /** That connection is there. */
  "pool:listen:success": PoolEvent & { client: PoolClient };
  /** It could not be made (then there is no client), or broke; it is made again. */
  "pool:listen:error": PoolEvent & { error: unknown; client: PoolClient | undefined };
  /** The database announced that there may be jobs. */
  "pool:listen:notification": PoolEvent & { message: Notification; client: PoolClient };
  /** Something is paused that concerns this pool: its jobs are not started from here on. */
  "pool:pause": PoolEvent & { pause: Pause };
  /** That pause is over. */
  "pool:resume": PoolEvent & { pause: Pause };
  /** The LISTEN connection was closed. */
  "pool:listen:release": PoolEvent & { client: PoolClient };
  /** The pool cannot keep its promises any more and stops; `action` says what it was doing. */
  "pool:fatalError": PoolEvent & { error: unknown; action: string };
  /** The pool has ended. */
  "pool:release": ShutdownEvent;
  /** A claim was answered, with fewer jobs than wanted if there are no more. */
  "claim:complete": PoolEvent & { jobs: readonly Job[]; wanted: number; durationMs: number };
  /** A claim failed; it is repeated. */
  "claim:error": PoolEvent & { error: unknown };
  /** The outcomes of so many jobs were written together. */
  "settle:complete": PoolEvent & { count: number; durationMs: number };
  /** No more jobs are claimed; those that run may end. */
  "pool:gracefulShutdown": ShutdownEvent & { message: string };
  /** That failed, so a forceful shutdown follows. */
  "pool:gracefulShutdown:error": ShutdownEvent & { error: unknown };
  /** A plugin's `stopWorker` hook failed; the shutdown continues. */
  "pool:gracefulShutdown:workerError": ShutdownEvent & { error: unknown; job: Job | null };
  /** All running jobs have ended, and their outcomes are written. */
  "pool:gracefulShutdown:complete": ShutdownEvent;
  /** Nothing is waited for: jobs that run are failed and unlocked. */
  "pool:forcefulShutdown": ShutdownEvent & { message: string };
  /** Some of that could not be written. */
  "pool:forcefulShutdown:error": ShutdownEvent & { error: unknown };
  /** It is written. */
  "pool:forcefulShutdown:complete": ShutdownEvent;
  /** The local queue is set up; only with the option `localQueue`, as all of these. */
  "localQueue:init": LocalQueueEvent;
  /** Its mode changed. */
  "localQueue:setMode": LocalQueueEvent & { oldMode: LocalQueueMode; newMode: LocalQueueMode };
  /** A claim found little, so the next one is held back. */
  "localQueue:refetchDelay:start": LocalQueueEvent & {
    jobCount: number;
    threshold: number;
    delayMs: number;
    abortThreshold: number;
  };
  /** Enough new jobs were announced to end the delay early. */
  "localQueue:refetchDelay:abort": LocalQueueEvent & { count: number; abortThreshold: number };
  /** The delay is over. */
  "localQueue:refetchDelay:expired": LocalQueueEvent;
  /** A claim has answered. */
  "localQueue:getJobs:complete": LocalQueueEvent & { jobs: readonly Job[] };
  /** Jobs that waited too long were returned. */
  "localQueue:returnJobs": LocalQueueEvent & { jobs: readonly Job[] };
  /** A slot was made. */
  "worker:create": WorkerEvent & { tasks: TaskList };
  /** A slot takes no further job. */
  "worker:release": WorkerEvent;
  /** A slot has ended. */
  "worker:stop": WorkerEvent & { error?: unknown };
  /** The pool claims jobs; one event for each free slot. */
  "worker:getJob:start": WorkerEvent;
  /** That claim failed; it is repeated. */
  "worker:getJob:error": WorkerEvent & { error: unknown };
  /** It found fewer jobs than there were free slots. */
  "worker:getJob:empty": WorkerEvent;
  /** The outcome of a job could not be written. */
  "worker:fatalError": WorkerEvent & { error: unknown; jobError: Error | null };
  /** The task is about to be called. */
  "job:start": JobEvent;
  /** The task returned; its outcome is not written yet. */
  "job:success": JobEvent & { durationMs: number };
  /** The task threw; its outcome is not written yet, except for a job that has used up its `maxSnoozes`. */
  "job:error": JobErrorEvent;
  /** The same, on the last attempt. */
  "job:failed": JobErrorEvent;
  /** The outcome of the job is written. */
  "job:complete": JobEvent & {
    error: Error | null;
    durationMs: number;
    outcome: JobOutcomeName;
    /** When it runs again, if it was snoozed. */
    runAt?: Date;
  };
  /** The job has reported its progress, and that is written. */
  "job:progress": JobEvent & { progress: JobProgress };
  /** A running job was cancelled from outside; its `abortSignal` fires now. */
  "job:cancelling": JobEvent & { error: Error };
  /** The job is cancelled, from outside or by its task, and gone. */
  "job:cancelled": JobErrorEvent;
  /** The task postponed the job, and that is written. */
  "job:snoozed": JobErrorEvent & { runAt: Date };
  /** The job took longer than its `timeout`; its `abortSignal` fires now. */
  "job:timeout": JobEvent & { timeoutMs: number };
  /** The task did not return within `abortGrace` after its timeout: the attempt has failed, but its slot stays taken until it returns. */
  "job:overrun": JobEvent & { durationMs: number; timeoutMs: number; isReplaced: boolean };
  /** The job was returned, not failed: its worker had to stop before the job ended. */
  "job:interrupted": JobEvent & { reason: string };
  /** The job no longer belonged to this pool when its outcome was to be written; nothing was changed. */
  "job:lost": JobEvent & { error: Error | null; durationMs?: number; outcome?: JobOutcomeName };
  /** Recurring jobs are about to be scheduled; missed runs come first. */
  "cron:starting": CronEvent & { start: Date };
  /** Missed runs are made up for; from here on, runs are scheduled when they are due. */
  "cron:started": CronEvent & { start: Date };
  /** These missed runs are about to be added. */
  "cron:backfill": CronEvent & { itemsToBackfill: JobAndCronIdentifierWithDetails[]; timestamp: string };
  /** A timer fired early; the tick waits. */
  "cron:prematureTimer": CronEvent & { currentTimestamp: number; expectedTimestamp: number };
  /** A timer fired late, in another minute than it should have. */
  "cron:overdueTimer": CronEvent & { currentTimestamp: number; expectedTimestamp: number };
  /** These runs are about to be added. */
  "cron:schedule": CronEvent & { timestamp: number; jobsAndIdentifiers: JobAndCronIdentifier[] };
  /** They were added, by this process or by another one. */
  "cron:scheduled": CronEvent & { timestamp: number; jobsAndIdentifiers: JobAndCronIdentifier[] };
  /** A scan for locks older than four hours begins. */
  "resetLocked:started": PoolEvent;
  /** They are released; the next scan is in `delay` milliseconds, or never. */
  "resetLocked:success": PoolEvent & { delay: number | null };
  /** That failed; it is repeated after `delay` milliseconds. */
  "resetLocked:failure": PoolEvent & { error: Error; delay: number | null };
  /** A signal asked the process to stop. */
  gracefulShutdown: { signal: NodeJS.Signals };
  /** A second signal asked it to stop at once. */
  forcefulShutdown: { signal: NodeJS.Signals };
  /** `runner.stop()` or `runner.kill()` was called. */
  stop: object;
}

export type WorkerEventMap = {
  [Name in keyof HathiEventMap]: HathiEventMap[Name] & { ctx: WorkerPluginContext };
};

type Typed<Map> = Omit<EventEmitter, "on" | "once" | "off" | "addListener" | "removeListener" | "emit"> & {
  [Method in "on" | "once" | "off" | "addListener" | "removeListener"]: <Name extends keyof Map>(
    event: Name,
    callback: (payload: Map[Name]) => void,
  ) => Typed<Map>;
} & { emit<Name extends keyof Map>(event: Name, payload: Map[Name]): boolean };

/** Node's emitter, with typed names and payloads. */
export type WorkerEvents = Typed<WorkerEventMap>;
export type GlobalEventMap = WorkerEventMap;
export type GlobalEvents = WorkerEvents;

/** Says what happened; the context is added on the way. */
export interface Emit {
  <Name extends keyof HathiEventMap>(name: Name, payload: HathiEventMap[Name]): void;
  /** True if there is a listener: lets the hot path skip building a payload. */
  heard(name: keyof HathiEventMap): boolean;
}
