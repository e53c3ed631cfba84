import type { Stats } from "node:fs";
import type { CallbackOrDescriptor, MiddlewareHandlers } from "graphile-config";
import type { PoolClient } from "pg";
import type { Job } from "../job.ts";
import type { WorkerPluginBaseContext, WorkerPluginContext } from "../plugin-context.ts";
import type { EnhancedWithPgClient, PromiseOrDirect, Task, TaskList } from "../task.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import type { HooksInput } from "./registry.ts";

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

/** Every hook is handed the context first. */
type WithContext<Hook> = Hook extends (...args: infer Args) => infer Result
  ? (ctx: WorkerPluginContext, ...args: Args) => Result
  : never;

declare global {
  namespace GraphileWorker {
    interface InitEvent {
      ctx: WorkerPluginBaseContext;
    }
    interface BootstrapEvent extends MigrationEvent {
      ctx: WorkerPluginContext;
    }
    interface MigrateEvent extends MigrationEvent {
      ctx: WorkerPluginContext;
    }
    interface PoolGracefulShutdownEvent {
      ctx: WorkerPluginContext;
      workerPool: WorkerPool;
      message: string;
    }
    interface PoolForcefulShutdownEvent {
      ctx: WorkerPluginContext;
      workerPool: WorkerPool;
      message: string;
    }
    interface PoolWorkerPrematureExitEvent {
      ctx: WorkerPluginContext;
      workerPool: WorkerPool;
      worker: Worker;
      /** Puts a new worker in the place of the one that ended. */
      replaceWithNewWorker(): void;
    }
  }

  namespace GraphileConfig {
    /** The older extension points: called in order, and free to change the event they are handed. */
    interface WorkerHooks {
      init(): void;
      prebootstrap(event: GraphileWorker.MigrateEvent): PromiseOrDirect<void>;
      postbootstrap(event: GraphileWorker.MigrateEvent): PromiseOrDirect<void>;
      premigrate(event: GraphileWorker.MigrateEvent): PromiseOrDirect<void>;
      postmigrate(event: GraphileWorker.MigrateEvent): PromiseOrDirect<void>;
      migrationError(event: GraphileWorker.MigrateEvent & { error: Error }): PromiseOrDirect<void>;
      loadTaskFromFiles(event: LoadTaskFromFilesEvent): PromiseOrDirect<void>;
      startWorker(event: {
        readonly worker: Worker;
        flagsToSkip: null | string[];
        readonly tasks: TaskList;
        readonly withPgClient: EnhancedWithPgClient;
      }): PromiseOrDirect<void>;
      stopWorker(event: {
        readonly worker: Worker;
        readonly withPgClient: EnhancedWithPgClient;
      }): PromiseOrDirect<void>;
    }

    /** What middleware may wrap. */
    interface WorkerMiddleware {
      init(event: GraphileWorker.InitEvent): object;
      bootstrap(event: GraphileWorker.BootstrapEvent): PromiseOrDirect<void>;
      migrate(event: GraphileWorker.MigrateEvent): PromiseOrDirect<void>;
      poolGracefulShutdown(event: GraphileWorker.PoolGracefulShutdownEvent): PromiseOrDirect<void>;
      poolForcefulShutdown(
        event: GraphileWorker.PoolForcefulShutdownEvent,
      ): PromiseOrDirect<{ forceFailedJobs: readonly Job[] }>;
      poolWorkerPrematureExit(event: GraphileWorker.PoolWorkerPrematureExitEvent): void;
    }

    interface Plugin {
      worker?: {
        middleware?: MiddlewareHandlers<WorkerMiddleware>;
        hooks?: { [Name in keyof WorkerHooks]?: CallbackOrDescriptor<WithContext<WorkerHooks[Name]>> };
        /** Hooks along a job's way, as the option `hooks` takes them; called before those of the option. */
        lifecycle?: HooksInput;
      };
    }
  }
}
