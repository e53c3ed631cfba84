import { format } from "node:util";
import type { CallerTransaction } from "../../caller-transaction.ts";
import type { Database } from "../../db/database.ts";
import type { Logger } from "../../logger.ts";
import type { ProgressReport } from "../../progress.ts";
import type { CompleteInOptions, TaskHelpers, WorkerDetails } from "../../task.ts";
import { defaultAbortGraceMs } from "../../task-options.ts";
import type { Worker } from "../../worker.ts";
import type { Completions, Inside } from "./completions.ts";
import { JobLogger } from "./job-logger.ts";
import type { JobRun } from "./job-run.ts";
import { QueueNames } from "./queue-names.ts";
import { resultText } from "./result-text.ts";
import type { AddersIn } from "./transactional.ts";

export interface HelperSources {
  readonly database: Database;
  readonly logger: Logger;
  /** Adds jobs on behalf of one that runs. */
  readonly addersOf: (run: JobRun) => ReturnType<AddersIn>;
  /** Runs statements inside a transaction of the task's own. */
  readonly executorFor: (tx: CallerTransaction) => Inside;
  /** Throws if it is certain that no transaction is open. */
  readonly requireOpenTransaction: (tx: CallerTransaction) => void;
  readonly addersIn: AddersIn;
  readonly getQueueNameBatchDelay: number;
  readonly schema: string;
  readonly useNodeTime: boolean;
  readonly taskIdentifiers: () => readonly string[];
  readonly reportProgress: (run: JobRun, report: ProgressReport) => void;
  /** The user's own state. */
  readonly context: GraphileWorker.Context | undefined;
}

export type MakeHelpers = (run: JobRun, completions: Completions) => TaskHelpers;

const $$run = Symbol("run");

/**
 * The signal is made when it is first read (`JobRun`), so this is a getter; and it is the object's own, so that copies of the helpers
 * (`{ ...helpers }`) have it too. One shared by all of them costs a tenth of one in the literal.
 */
const abortSignal: PropertyDescriptor & ThisType<{ readonly [$$run]: JobRun }> = {
  get() {
    return this[$$run].signal;
  },
  enumerable: true,
  configurable: true,
};

/** Prepares what is the same for all jobs of a pool, so that each job pays only for its own part. */
export function makeJobHelpers(sources: HelperSources): MakeHelpers {
  const { database, addersOf, executorFor, addersIn, reportProgress, context = {} } = sources;
  const lent = new Map<string, Pick<TaskHelpers, "withPgClient" | "query">>();
  const lendTo = (task: string): Pick<TaskHelpers, "withPgClient" | "query"> => {
    const withPgClient = database.lendTo(task);
    const made = {
      withPgClient,
      query: ((text, values) => withPgClient((client) => client.query(text, values))) as TaskHelpers["query"],
    };
    lent.set(task, made);
    return made;
  };
  // One object for each worker, since a getter in each job's helpers would cost more than everything else in them.
  const detailsByWorker = new WeakMap<Worker, WorkerDetails>();
  const describeWorker = (worker: Worker): WorkerDetails => {
    const { workerId } = worker;
    const { schema, useNodeTime } = sources;
    const made = {
      workerId,
      schema,
      useNodeTime,
      get taskIdentifiers() {
        return sources.taskIdentifiers();
      },
    };
    detailsByWorker.set(worker, made);
    return made;
  };
  const queueNames = new QueueNames(database, sources.getQueueNameBatchDelay);

  return (run, completions) => {
    const { job } = run;
    const logger = new JobLogger(sources.logger, run.worker, job);
    const { withPgClient, query } = lent.get(job.task_identifier) ?? lendTo(job.task_identifier);
    const { addJob, addJobs } = addersOf(run);
    const helpers = {
      [$$run]: run,
      // The task's own: whatever it does to it, the row that is settled is the one that was claimed.
      job: { ...job },
      withPgClient,
      query,
      addJob,
      addJobs,
      withTransaction: (tx: CallerTransaction) => addersIn(executorFor(tx), run),
      completeIn: async (tx: CallerTransaction, options?: CompleteInOptions) => {
        sources.requireOpenTransaction(tx);
        const result = options?.result === undefined ? null : resultText(job, options.result);
        await completions.complete(run, executorFor(tx), result);
      },
      abortPromise: run.promise,
      abortGrace: run.options?.abortGrace ?? defaultAbortGraceMs,
      context,
      worker: detailsByWorker.get(run.worker) ?? describeWorker(run.worker),
      getQueueName: (queueId: number | null | undefined = job.job_queue_id) =>
        queueId === null || queueId === undefined ? null : queueNames.get(queueId),
      reportProgress: (report: ProgressReport) => reportProgress(run, report),
      logger,
      debug(text: string, ...parameters: unknown[]) {
        logger.error("REMOVED: helpers.debug has been replaced with helpers.logger.debug; please update your task.");
        logger.debug(format(text, ...parameters));
      },
    };
    return Object.defineProperty(helpers, "abortSignal", abortSignal) as unknown as TaskHelpers;
  };
}
