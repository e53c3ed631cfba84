import type { Settings } from "../config/settings.ts";
import type { Database } from "../db/database.ts";
import type { ListenOn } from "../db/listener.ts";
import type { OutageLog } from "../db/outage-log.ts";
import type { Emit } from "../events.ts";
import type { KeepRules } from "../kept-history.ts";
import type { Logger } from "../logger.ts";
import type { Task, TaskList } from "../task.ts";
import type { TaskRunSettings } from "../task-options.ts";
import type { LimitDeclaration } from "./claim/limited-claims.ts";
import type { Lifeline } from "./lifeline.ts";
import type { PoolHooks, PoolInterceptors } from "./pool-hooks.ts";
import type { MakeHelpers } from "./run/helpers.ts";
import type { AddersIn } from "./run/transactional.ts";

/** How a pool behaves. */
type PoolSettings = Pick<
  Settings,
  | "concurrentJobs"
  | "pollInterval"
  | "useNodeTime"
  | "gracefulShutdownAbortTimeout"
  | "shutdownGracePeriod"
  | "interruptedJobRetryDelay"
  | "minResetLockedInterval"
  | "maxResetLockedInterval"
  | "completeJobBatchDelay"
  | "failJobBatchDelay"
  | "localQueue"
  | "acceptedFlags"
>;

export interface PoolOptions {
  readonly database: Database;
  readonly tasks: TaskList;
  readonly settings: PoolSettings;
  readonly emit: Emit;
  readonly logger: Logger;
  /** Shared with everything else in this process that works for the pool. */
  readonly outages: OutageLog;
  readonly makeHelpers: MakeHelpers;
  /** Adds jobs inside a transaction, on behalf of a job that runs. */
  readonly addersIn: AddersIn;
  readonly hooks: PoolHooks;
  /** How jobs of a task run, if anything was said about it. */
  readonly taskOptions: (name: string, task: Task) => TaskRunSettings | undefined;
  /** The limits that this process's code defines. */
  readonly limitDeclaration: () => LimitDeclaration;
  /** Tasks of this pool have limits, or other tasks than before. */
  readonly onLimited: () => void;
  /** What is kept of jobs that have ended. */
  readonly keepRules: KeepRules;
  readonly interceptors?: PoolInterceptors | undefined;
  readonly forbiddenFlags: () => Promise<readonly string[] | null>;
  /** False if the forbidden flags can change from one job to the next, so that none may be claimed ahead. */
  readonly mayHoldAhead: boolean;
  /** The connection to listen on; undefined to rely on polling alone. */
  readonly listenOn: ListenOn | undefined;
  readonly workerId: string | undefined;
  /** Having no tasks is not worth a warning. */
  readonly mayBeIdle: boolean;
  /** Run until there is nothing more to do, then stop. */
  readonly isOnce: boolean;
  /** True if claims are statements of their own, so that they may commit without waiting for the disk. */
  readonly ownsTransactions: boolean;
  /** The schema was changed in a breaking way under us. */
  readonly onBreakingMigration: () => void;
  /** Heartbeats, for those who would recover our jobs if we died. */
  readonly lifeline?: Lifeline | undefined;
}
