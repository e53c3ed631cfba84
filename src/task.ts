import type { PoolClient, QueryResult, QueryResultRow } from "pg";
import type { AddAnyJobFunction, AddAnyJobsFunction, Job, PayloadOf, TaskName } from "./job.ts";
import type { Logger } from "./logger.ts";

declare global {
  namespace GraphileWorker {
    /** Merge the type of your own state into this: that is what `helpers.context` and hooks then have. */
    interface Context {}
  }
}

export type PromiseOrDirect<T> = Promise<T> | T;

/** Lends a client to the callback and takes it back when the callback has settled. */
export type WithPgClient = <T = void>(callback: (pgClient: PoolClient) => Promise<T>) => Promise<T>;

/** The same, and once more with the callback repeated when the database asks for it (deadlock, serialization, start-up). */
export interface EnhancedWithPgClient extends WithPgClient {
  /** The callback may run many times: it must begin and end its own transaction and hold no state. */
  withRetries: WithPgClient;
}

/** What everything that can reach the database is handed. */
export interface Helpers {
  logger: Logger;
  withPgClient: EnhancedWithPgClient;
  addJob: AddAnyJobFunction;
  addJobs: AddAnyJobsFunction;
}

/** What a task is handed besides its payload. */
export interface JobHelpers extends Helpers {
  job: Job;
  /** The name of a queue; of this job's, unless an id is given. */
  getQueueName: (queueId?: number | null) => PromiseOrDirect<string | null>;
  query: <R extends QueryResultRow = QueryResultRow>(queryText: string, values?: unknown[]) => Promise<QueryResult<R>>;
  /** Aborted when the worker is asked to stop and the job has had its time. */
  abortSignal: AbortSignal;
  /** Rejects when `abortSignal` aborts; made for `Promise.race`. */
  abortPromise: Promise<never>;
  /** Your own state: the option `context`, typed by merging `GraphileWorker.Context`. Empty if none was given. */
  context: GraphileWorker.Context;
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
type UnregisteredTask = (payload: any, helpers: JobHelpers) => any;

/** The tasks a worker knows, by name. */
export type TaskList = {
  [Name in TaskName]?: Name extends keyof GraphileWorker.Tasks ? Task<Name> : UnregisteredTask;
};

export function isValidTask<Name extends TaskName = TaskName>(fn: unknown): fn is Task<Name> {
  return typeof fn === "function";
}
