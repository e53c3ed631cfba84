import type { PoolClient, QueryResult, QueryResultRow } from "pg";
import type { CallerTransaction } from "./caller-transaction.ts";
import type {
  AddAnyJobFunction,
  AddAnyJobsFunction,
  AddJobFunction,
  AddJobsFunction,
  Job,
  PayloadOf,
  TaskName,
} from "./job.ts";
import type { Logger } from "./logger.ts";
import type { ProgressReport } from "./progress.ts";

declare global {
  namespace GraphileWorker {
    /** Merge the type of your own state into this: that is what `helpers.context` and hooks then have. */
    interface Context {}
  }
}

export type PromiseOrDirect<T> = Promise<T> | T;

/** Runs the callback with a database client, and releases the client when the callback has settled. */
export type WithPgClient = <T = void>(callback: (pgClient: PoolClient) => Promise<T>) => Promise<T>;

/**
 * Runs the callback with a database client, and releases the client when the callback has settled. `withPgClient.withRetries` also repeats
 * the callback after a deadlock, a serialization failure or a server start.
 */
export interface EnhancedWithPgClient extends WithPgClient {
  /** The callback may run several times: it must begin and end its own transaction and keep no state. */
  withRetries: WithPgClient;
}

/** What tasks and utilities share. A mock of Graphile Worker's shape is one, too. */
export interface Helpers {
  /** Logs with the scope of the worker and job. */
  logger: Logger;
  withPgClient: WithPgClient & Partial<EnhancedWithPgClient>;
  addJob: AddJobFunction;
  addJobs: AddJobsFunction;
}

/** The worker that runs a job. */
export interface WorkerDetails {
  readonly workerId: string;
  /** The schema that holds the jobs, as the option says it (not quoted for SQL). */
  readonly schema: string;
  /** The tasks that this worker can run. */
  readonly taskIdentifiers: readonly string[];
  /** True if times are taken from this process, false if the database's clock counts. */
  readonly useNodeTime: boolean;
}

/** Applications that give `GraphileWorker.Context` a shape can rely on it; mocks in those that do not may leave it out. */
type WithContext = keyof GraphileWorker.Context extends never
  ? {
      /** Your own state: the option `context`, typed by merging `GraphileWorker.Context`. Empty if none was given. */
      context?: GraphileWorker.Context;
    }
  : {
      /** Your own state: the option `context`. */
      context: GraphileWorker.Context;
    };

/** What is kept of a job that is completed in a transaction. */
export interface CompleteInOptions {
  /** The job's result, if its task has `keepResult`: what it returns afterwards comes too late. */
  readonly result?: unknown;
}

/** What a task may rely on besides its payload. A mock of the original's shape is one; a worker hands over `TaskHelpers`. */
export interface JobHelpers extends Helpers, WithContext {
  /** The job that runs, as it was claimed. */
  job: Job;
  /** The name of this job's queue, or of the queue with the given id. */
  getQueueName: (queueId?: number | null) => PromiseOrDirect<string | null>;
  /** Runs one statement on a client of the worker's pool. */
  query: <R extends QueryResultRow = QueryResultRow>(queryText: string, values?: unknown[]) => Promise<QueryResult<R>>;
  /**
   * This job's own signal. It aborts when the job is cancelled, exceeds its timeout, was recovered by another worker, or when its worker
   * stops and the time to finish is over. Its `reason` is an error that says which.
   */
  abortSignal: AbortSignal;
  /** Rejects when `abortSignal` aborts; for `Promise.race`. */
  abortPromise: Promise<void>;
  /** Milliseconds a job has to end once its signal has aborted: the task option `abortGrace`. */
  abortGrace?: number;
  /**
   * Says how far the job is: a share from 0 to 1, or `{ done, total, note }`. Call it as often as you like: at most one statement a second is
   * written for all jobs of a worker. It never throws.
   */
  reportProgress?: (report: ProgressReport) => void;
  /**
   * Completes this job in your own transaction: what you write there, the jobs you add there and the completion are committed together, or not
   * at all. Takes what `withTransaction` takes. Throws `JobLostError`, and your transaction cannot commit, if the job was given to another worker.
   */
  completeIn?: (tx: CallerTransaction, options?: CompleteInOptions) => Promise<void>;
  /** Adds jobs in your own transaction. */
  withTransaction?: (tx: CallerTransaction) => Pick<Helpers, "addJob" | "addJobs">;
  /** The open transaction of a task with `transactional: true`, in which `addJob` and `addJobs` add, too. It is committed with the completion. */
  tx?: PoolClient;
  /** The worker that runs this job. */
  worker?: WorkerDetails;
  /** @deprecated Use `logger.debug`. */
  debug?: (format: string, ...parameters: unknown[]) => void;
}

/** The second argument of a task. */
export interface TaskHelpers extends JobHelpers {
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
  withPgClient: EnhancedWithPgClient;
  abortPromise: Promise<never>;
  abortGrace: number;
  completeIn: NonNullable<JobHelpers["completeIn"]>;
  withTransaction: NonNullable<JobHelpers["withTransaction"]>;
  /** Your own state: the option `context`. Empty if none was given. */
  context: GraphileWorker.Context;
  reportProgress: (report: ProgressReport) => void;
  worker: WorkerDetails;
  /** @deprecated Use `logger.debug`. */
  debug: (format: string, ...parameters: unknown[]) => void;
}

/**
 * Does the work of a job. A task whose payload is an array may return an array of promises, one per item: then only the
 * items whose promise rejected are tried again.
 */
export type Task<Name extends TaskName = TaskName> = (
  payload: PayloadOf<Name>,
  helpers: JobHelpers,
) => PromiseOrDirect<void | PromiseOrDirect<unknown>[]>;

// biome-ignore lint/suspicious/noExplicitAny: an unregistered task may declare whatever payload it expects, and give anything
type UnregisteredTask = (payload: any, helpers: TaskHelpers) => any;

/** The tasks a worker knows, by name. */
export type TaskList = {
  [Name in TaskName]?: Name extends keyof GraphileWorker.Tasks
    ? (payload: PayloadOf<Name>, helpers: TaskHelpers) => ReturnType<Task<Name>>
    : UnregisteredTask;
};

/** Whether a value can be used as a task: any function. */
export function isValidTask<Name extends TaskName = TaskName>(fn: unknown): fn is Task<Name> {
  return typeof fn === "function";
}
