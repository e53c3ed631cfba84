import type { Database } from "../db/database.ts";
import { type CheckUp, examineHealth } from "./doctor.ts";
import { explainJob, type JobExplanation } from "./explain-job.ts";
import { getJobStats, type JobStats, type JobStatsOptions } from "./job-stats.ts";
import { getJob, type JobPage, type ListJobsOptions, listJobs, type ShownJob } from "./list-jobs.ts";
import { type ListQueuesOptions, listQueues, type QueueStatus } from "./list-queues.ts";
import { listWorkers, type WorkerStatus } from "./list-workers.ts";

/** Looks at jobs without changing anything. */
export interface JobInspector {
  /** One page of the jobs that match, newest first. */
  listJobs(options?: ListJobsOptions): Promise<JobPage>;
  /** One job with its payload; null if there is none with this id. */
  getJob(id: string): Promise<ShownJob | null>;
  /** How many jobs there are, by state, task and queue; estimated when there are very many. */
  getJobStats(options?: JobStatsOptions): Promise<JobStats>;
  /** Named queues that are held or have jobs waiting, fullest first. */
  listQueues(options?: ListQueuesOptions): Promise<QueueStatus[]>;
  /** Everybody who gives signs of life or holds a lock. */
  listWorkers(): Promise<WorkerStatus[]>;
  /** Why a job is not running, most decisive reason first. */
  explainJob(id: string): Promise<JobExplanation>;
  /** Whether the database is fit for the work, check by check. */
  examineHealth(): Promise<CheckUp[]>;
}

export function makeJobInspector(database: Database): JobInspector {
  return {
    listJobs: (options) => listJobs(database, options),
    getJob: (id) => getJob(database, id),
    getJobStats: (options) => getJobStats(database, options),
    listQueues: (options) => listQueues(database, options),
    listWorkers: () => listWorkers(database),
    explainJob: (id) => explainJob(database, id),
    examineHealth: () => examineHealth(database),
  };
}
