import type { Database } from "../db/database.ts";
import { type KnownCrontab, readKnownCrontabs } from "../db/statements/cron.ts";
import type { JobId } from "../job-checks.ts";
import type { TaskList } from "../task.ts";
import { type CheckPayloadsOptions, checkPayloads, type PayloadReport } from "./check-payloads.ts";
import { type CheckUp, type ExamineHealthOptions, examineHealth } from "./doctor.ts";
import { explainJob, type JobExplanation } from "./explain-job.ts";
import { getJobFigures, type JobFigures, type JobFiguresOptions } from "./job-figures.ts";
import type { JobFilter } from "./job-filter.ts";
import { getJobStats, type JobStats, type JobStatsOptions } from "./job-stats.ts";
import { getJobTimes, type JobTimesOptions, type TaskTimes } from "./job-times.ts";
import { getJobTrends, type JobTrends, type JobTrendsOptions } from "./job-trends.ts";
import {
  countJobs,
  type JobPage,
  type JobScan,
  listJobs,
  type PageOptions,
  type ScanOptions,
  scanJobs,
} from "./list-jobs.ts";
import { type ListQueuesOptions, listQueues, type QueueStatus } from "./list-queues.ts";
import { type ListWorkersOptions, listWorkers, type WorkerStatus } from "./list-workers.ts";

/** Reads jobs, queues and workers. Changes nothing. */
export interface JobInspector {
  /** Returns one page of the jobs that match, newest first; without a filter, of all jobs. */
  listJobs(filter?: JobFilter, page?: PageOptions): Promise<JobPage>;
  /** Counts the jobs that match. It reads them all; `getJobStats` estimates if there are very many. */
  countJobs(filter?: JobFilter): Promise<number>;
  /** Looks at a bounded number of jobs from the oldest on and returns the ids of those that match, for steps over very many. */
  scanJobs(filter: JobFilter, options?: ScanOptions): Promise<JobScan>;
  /** Explains why a job is not running, the most decisive reason first. */
  explainJob(id: JobId): Promise<JobExplanation>;
  /** Counts jobs by state, task and queue. Estimates if there are very many (more than about 150,000), unless `exact` is set. */
  getJobStats(options?: JobStatsOptions): Promise<JobStats>;
  /** Returns how long jobs waited and ran and how often they failed, by task, as workers with the option `metrics` have recorded it. */
  getJobTimes(options?: JobTimesOptions): Promise<TaskTimes[]>;
  /** Returns how many jobs ended, failed, and how long they waited and ran, over time, as workers with the option `metrics` have recorded it. */
  getJobTrends(options?: JobTrendsOptions): Promise<JobTrends>;
  /** Returns figures by task at a cost that is bounded however many jobs there are. All processes share them; they are some seconds old. */
  getJobFigures(options?: JobFiguresOptions): Promise<JobFigures>;
  /** Lists named queues that are held or have waiting jobs, the fullest first. */
  listQueues(options?: ListQueuesOptions): Promise<QueueStatus[]>;
  /** Lists all workers that send heartbeats or hold a lock. */
  listWorkers(options?: ListWorkersOptions): Promise<WorkerStatus[]>;
  /** Lists the recurring jobs that were ever scheduled in this schema, and when each last ran. */
  listCrontabs(): Promise<KnownCrontab[]>;
  /** Checks the database for problems, as `hathi doctor` does. */
  examineHealth(options?: ExamineHealthOptions): Promise<CheckUp[]>;
  /** Checks the payloads of jobs that may still run against their task definitions, as `hathi check` does. */
  checkPayloads(tasks: TaskList, options?: CheckPayloadsOptions): Promise<PayloadReport>;
}

/** Workers without a heartbeat for `silenceMs` count as dead. */
export function makeJobInspector(database: Database, silenceMs?: number): JobInspector {
  return {
    listJobs: (filter, page) => listJobs(database, filter, page),
    countJobs: (filter) => countJobs(database, filter),
    scanJobs: (filter, options) => scanJobs(database, filter, options),
    explainJob: (id) => explainJob(database, id, silenceMs),
    getJobStats: (options) => getJobStats(database, options),
    getJobTimes: (options) => getJobTimes(database, options),
    getJobTrends: (options) => getJobTrends(database, options),
    getJobFigures: (options) => getJobFigures(database, options),
    listQueues: (options) => listQueues(database, options),
    listWorkers: (options) => listWorkers(database, silenceMs, options),
    listCrontabs: () => database.run(readKnownCrontabs, undefined),
    examineHealth: (options) => examineHealth(database, options),
    checkPayloads: (tasks, options) => checkPayloads(database, tasks, options),
  };
}
