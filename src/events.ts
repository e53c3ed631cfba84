import type { EventEmitter } from "node:events";
import type { Notification, PoolClient } from "pg";
import type { WorkerPluginContext } from "./hooks.ts";
import type { Job, TaskSpec } from "./job.ts";
import type { TaskList } from "./task.ts";
import type { Cron, LocalQueue, LocalQueueMode, Worker, WorkerPool } from "./worker.ts";

/** A job that a crontab entry asks for. */
export interface CronJob {
  task: string;
  payload: { [key: string]: unknown };
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

/** Everything an observer can hear, and what it is told. Each payload also carries `ctx`. */
export interface HathiEventMap {
  "pool:create": PoolEvent;
  "pool:listen:connecting": PoolEvent & { attempts: number };
  "pool:listen:success": PoolEvent & { client: PoolClient };
  "pool:listen:error": PoolEvent & { error: unknown };
  "pool:listen:notification": PoolEvent & { message: Notification; client: PoolClient };
  "pool:listen:release": PoolEvent & { client: PoolClient };
  "pool:fatalError": PoolEvent & { error: unknown; action: string };
  "pool:release": ShutdownEvent;
  "pool:gracefulShutdown": ShutdownEvent & { message: string };
  "pool:gracefulShutdown:error": ShutdownEvent & { error: unknown };
  "pool:gracefulShutdown:workerError": ShutdownEvent & { error: unknown; job: Job | null };
  "pool:gracefulShutdown:complete": ShutdownEvent;
  "pool:forcefulShutdown": ShutdownEvent & { message: string };
  "pool:forcefulShutdown:error": ShutdownEvent & { error: unknown };
  "pool:forcefulShutdown:complete": ShutdownEvent;
  "localQueue:init": LocalQueueEvent;
  "localQueue:setMode": LocalQueueEvent & { oldMode: LocalQueueMode; newMode: LocalQueueMode };
  "localQueue:refetchDelay:start": LocalQueueEvent & {
    jobCount: number;
    threshold: number;
    delayMs: number;
    abortThreshold: number;
  };
  "localQueue:refetchDelay:abort": LocalQueueEvent & { count: number; abortThreshold: number };
  "localQueue:refetchDelay:expired": LocalQueueEvent;
  "localQueue:getJobs:complete": LocalQueueEvent & { jobs: readonly Job[] };
  "localQueue:returnJobs": LocalQueueEvent & { jobs: readonly Job[] };
  "worker:create": WorkerEvent & { tasks: TaskList };
  "worker:release": WorkerEvent;
  "worker:stop": WorkerEvent & { error?: unknown };
  "worker:getJob:start": WorkerEvent;
  "worker:getJob:error": WorkerEvent & { error: unknown };
  "worker:getJob:empty": WorkerEvent;
  "worker:fatalError": WorkerEvent & { error: unknown; jobError: Error | null };
  "job:start": JobEvent;
  "job:success": JobEvent & { durationMs: number };
  "job:error": JobErrorEvent;
  "job:failed": JobErrorEvent;
  /** The database knows how the job ended. */
  "job:complete": JobEvent & { error: Error | null; durationMs: number };
  /** The job was given back, not failed: its worker had to stop before it ended. */
  "job:interrupted": JobEvent & { reason: string };
  /** The job was no longer ours when its end was written; nothing was changed. */
  "job:lost": JobEvent & { error: Error | null };
  "cron:starting": CronEvent & { start: Date };
  "cron:started": CronEvent & { start: Date };
  "cron:backfill": CronEvent & { itemsToBackfill: JobAndCronIdentifierWithDetails[]; timestamp: string };
  "cron:prematureTimer": CronEvent & { currentTimestamp: number; expectedTimestamp: number };
  "cron:overdueTimer": CronEvent & { currentTimestamp: number; expectedTimestamp: number };
  "cron:schedule": CronEvent & { timestamp: number; jobsAndIdentifiers: JobAndCronIdentifier[] };
  "cron:scheduled": CronEvent & { timestamp: number; jobsAndIdentifiers: JobAndCronIdentifier[] };
  "resetLocked:started": PoolEvent;
  "resetLocked:success": PoolEvent & { delay: number | null };
  "resetLocked:failure": PoolEvent & { error: Error; delay: number | null };
  gracefulShutdown: { signal: NodeJS.Signals };
  forcefulShutdown: { signal: NodeJS.Signals };
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
  /** True if anybody listens: lets the hot path skip building a payload for nobody. */
  heard(name: keyof HathiEventMap): boolean;
}

/**
 * Events are for watching, never for steering: no decision in this library depends on one, and a listener that throws is
 * reported, not obeyed.
 */
export function makeEmit(
  emitter: Pick<EventEmitter, "rawListeners" | "listenerCount">,
  context: WorkerPluginContext,
  onListenerError: (error: unknown, name: string) => void,
): Emit {
  const emit: Emit = (name, payload) => {
    if (emitter.listenerCount(name) === 0) return;
    const withContext = { ctx: context, ...payload };
    for (const listener of emitter.rawListeners(name)) {
      try {
        listener.call(emitter, withContext);
      } catch (error) {
        onListenerError(error, name);
      }
    }
  };
  emit.heard = (name) => emitter.listenerCount(name) > 0;
  return emit;
}
