import type { Stats } from "node:fs";
import type { AsyncHooks, CallbackOrDescriptor, Middleware, MiddlewareHandlers } from "graphile-config";
import type { PoolClient } from "pg";
import type { WorkerEvents } from "./events.ts";
import type { HooksInput } from "./hook-registry.ts";
import type { Logger } from "./logger.ts";
import type { EnhancedWithPgClient, PromiseOrDirect, Task, TaskList } from "./task.ts";
import type { Worker, WorkerPool } from "./worker.ts";

/** What plugins know before the options are compiled. */
export interface WorkerPluginBaseContext {
  version: string;
  resolvedPreset: GraphileConfig.ResolvedPreset;
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
}

/** A file that may hold a task. */
export interface FileDetails {
  fullPath: string;
  stats: Stats;
  baseName: string;
  extension: string;
}

export type Writeable<T> = { -readonly [Key in keyof T]: T[Key] };

export interface MigrationEvent {
  client: PoolClient;
  postgresVersion: number;
  scratchpad: Record<string, unknown>;
}

export interface LoadTaskFromFilesEvent {
  /** Set this, and the task is loaded; plugins that come later leave it alone. */
  handler?: Task;
  readonly taskIdentifier: string;
  readonly fileDetailsList: readonly FileDetails[];
}

declare global {
  namespace GraphileConfig {
    /** The older extension points: called in order, and free to change the event they are handed. */
    interface WorkerHooks {
      init(ctx: WorkerPluginContext): void;
      prebootstrap(ctx: WorkerPluginContext, event: MigrationEvent): PromiseOrDirect<void>;
      postbootstrap(ctx: WorkerPluginContext, event: MigrationEvent): PromiseOrDirect<void>;
      premigrate(ctx: WorkerPluginContext, event: MigrationEvent): PromiseOrDirect<void>;
      postmigrate(ctx: WorkerPluginContext, event: MigrationEvent): PromiseOrDirect<void>;
      migrationError(ctx: WorkerPluginContext, event: MigrationEvent & { error: Error }): PromiseOrDirect<void>;
      loadTaskFromFiles(ctx: WorkerPluginContext, event: LoadTaskFromFilesEvent): PromiseOrDirect<void>;
      startWorker(
        ctx: WorkerPluginContext,
        event: {
          readonly worker: Worker;
          flagsToSkip: null | string[];
          readonly tasks: TaskList;
          readonly withPgClient: EnhancedWithPgClient;
        },
      ): PromiseOrDirect<void>;
      stopWorker(
        ctx: WorkerPluginContext,
        event: { readonly worker: Worker; readonly withPgClient: EnhancedWithPgClient },
      ): PromiseOrDirect<void>;
    }

    /** What middleware may wrap. */
    interface WorkerMiddleware {
      init(event: { ctx: WorkerPluginBaseContext }): object;
      bootstrap(event: MigrationEvent & { ctx: WorkerPluginContext }): PromiseOrDirect<void>;
      migrate(event: MigrationEvent & { ctx: WorkerPluginContext }): PromiseOrDirect<void>;
      poolGracefulShutdown(event: {
        ctx: WorkerPluginContext;
        workerPool: WorkerPool;
        message: string;
      }): PromiseOrDirect<void>;
      poolForcefulShutdown(event: {
        ctx: WorkerPluginContext;
        workerPool: WorkerPool;
        message: string;
      }): PromiseOrDirect<{ forceFailedJobs: readonly unknown[] }>;
      poolWorkerPrematureExit(event: {
        ctx: WorkerPluginContext;
        workerPool: WorkerPool;
        worker: Worker;
        replaceWithNewWorker(): void;
      }): void;
    }

    interface Plugin {
      worker?: {
        middleware?: MiddlewareHandlers<WorkerMiddleware>;
        hooks?: { [Name in keyof WorkerHooks]?: CallbackOrDescriptor<WorkerHooks[Name]> };
        /** Hooks along a job's way, as the option `hooks` takes them; called before those of the option. */
        lifecycle?: HooksInput;
      };
    }
  }
}
