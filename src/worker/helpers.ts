import { format } from "node:util";
import type { Database } from "../db/database.ts";
import type { AddAnyJobFunction, AddAnyJobsFunction, Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import type { JobHelpers } from "../task.ts";
import type { Worker } from "../worker.ts";
import { JobLogger } from "./job-logger.ts";
import { QueueNames } from "./queue-names.ts";

export interface HelperSources {
  readonly database: Database;
  readonly logger: Logger;
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
  readonly getQueueNameBatchDelay: number;
  /** The user's own state. */
  readonly context: GraphileWorker.Context | undefined;
}

export type MakeHelpers = (
  job: Job,
  worker: Worker,
  abortSignal: AbortSignal,
  abortPromise: Promise<never>,
) => JobHelpers;

/** Prepares what is the same for all jobs of a pool, so that each job pays only for its own part. */
export function makeJobHelpers(sources: HelperSources): MakeHelpers {
  const { database, addJob, addJobs, context = {} } = sources;
  const { withPgClient } = database;
  const queueNames = new QueueNames(database, sources.getQueueNameBatchDelay);
  const query: JobHelpers["query"] = (text, values) => withPgClient((client) => client.query(text, values));

  return (job, worker, abortSignal, abortPromise) => {
    const logger = new JobLogger(sources.logger, worker, job);
    return {
      job,
      withPgClient,
      query,
      addJob,
      addJobs,
      abortSignal,
      abortPromise,
      context,
      getQueueName: (queueId = job.job_queue_id) =>
        queueId === null || queueId === undefined ? null : queueNames.get(queueId),
      logger,
      debug(text, ...parameters) {
        logger.error("REMOVED: helpers.debug has been replaced with helpers.logger.debug; please update your task.");
        logger.debug(format(text, ...parameters));
      },
    };
  };
}
