import { randomBytes } from "node:crypto";
import {
  type AddAnyJobFunction,
  type AddAnyJobsFunction,
  type Job,
  Logger,
  makeWorkerUtils,
  type RunnerOptions,
  type WorkerUtils,
} from "../index.ts";
import {
  assertJobAdded,
  assertNoJobAdded,
  type ExpectedJob,
  findJobs,
  type KeptJob,
  type TestedTask,
} from "./assert-added.ts";
import { clock, type TestClock } from "./clock.ts";
import { type JobOutcome, type RunDueOptions, type RunSource, runDueJobs, runJob } from "./run-jobs.ts";

/** As for `run`. The database is `pgPool`, `connectionString` or DATABASE_URL; nothing is logged unless there is a `logger`. */
export interface TestQueueOptions extends Omit<RunnerOptions, "useNodeTime" | "events"> {
  /** A schema of yours to use as it is and to leave as it is; a fresh one that is dropped afterwards, if left out. */
  readonly schema?: string;
}

/** A queue that belongs to one test. */
export interface TestQueue {
  readonly schema: string;
  /** Everything that `makeWorkerUtils` gives. */
  readonly utils: WorkerUtils;
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
  /** For code under test that makes its own utils, or runs its own worker, on this queue. */
  readonly options: RunnerOptions;
  /** Moves the time of this process; shows the real one again when the queue is dropped. */
  readonly clock: TestClock;
  /** Runs all jobs that are due, and those that they add; each job once, however soon it would be tried again. */
  runDueJobs(options?: RunDueOptions): Promise<JobOutcome[]>;
  /** Runs this job now, whenever it would be due, and no other. */
  runJob(job: string | Pick<Job, "id">): Promise<JobOutcome>;
  /** All jobs that wait, oldest first, with their payloads. */
  jobs(task?: TestedTask): Promise<KeptJob[]>;
  /** Gives the first job that waits and is as expected; fails if there is none. */
  assertJobAdded<Task extends TestedTask>(task: Task, expected?: ExpectedJob<Task>): Promise<KeptJob>;
  /** Fails if a job waits that is as described. */
  assertNoJobAdded<Task extends TestedTask>(task: Task, unexpected?: ExpectedJob<Task>): Promise<void>;
  /** Drops the fresh schema and closes everything. May be called twice. */
  drop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens a queue for one test, in a schema that nobody else knows. Jobs are claimed, run and settled by a real worker on a real
 * database, but only when the test says so.
 */
export async function openTestQueue(given: TestQueueOptions = {}): Promise<TestQueue> {
  const schema = given.schema ?? `hathi_test_${randomBytes(6).toString("hex")}`;
  const options: RunnerOptions = {
    ...databaseOf(given),
    ...given,
    schema,
    logger: given.logger ?? new Logger(() => () => undefined),
    useNodeTime: true,
    noHandleSignals: true,
  };
  const escapedSchema = `"${schema.replaceAll('"', '""')}"`;
  const utils = await makeWorkerUtils(options);
  const source: RunSource = { utils, options, escapedSchema };
  let dropping: Promise<void> | undefined;
  const drop = (): Promise<void> => {
    dropping ??= close(source, given.schema === undefined);
    return dropping;
  };
  return {
    schema,
    utils,
    addJob: utils.addJob,
    addJobs: utils.addJobs,
    options,
    clock,
    runDueJobs: (runOptions) => runDueJobs(source, runOptions),
    runJob: (job) => runJob(source, typeof job === "string" ? job : job.id),
    jobs: (task) => findJobs(utils, task),
    assertJobAdded: (task, expected) => assertJobAdded(utils, task, expected),
    assertNoJobAdded: (task, unexpected) => assertNoJobAdded(utils, task, unexpected),
    drop,
    [Symbol.asyncDispose]: drop,
  };
}

function databaseOf({ pgPool, connectionString, preset }: TestQueueOptions): RunnerOptions {
  if (pgPool || connectionString || preset?.worker?.connectionString || process.env.PGDATABASE) return {};
  if (process.env.DATABASE_URL) return { connectionString: process.env.DATABASE_URL };
  throw new Error(
    "There is no database for the test queue: give 'connectionString' or 'pgPool', set DATABASE_URL, or use what startTestDatabase() gives.",
  );
}

async function close({ utils, escapedSchema }: RunSource, isFresh: boolean): Promise<void> {
  clock.reset();
  try {
    if (isFresh) await utils.withPgClient((client) => client.query(`drop schema if exists ${escapedSchema} cascade`));
  } finally {
    await utils.release();
  }
}
