import { randomBytes } from "node:crypto";
import {
  type AddAnyJobFunction,
  type AddAnyJobsFunction,
  type Job,
  Logger,
  makeWorkerUtils,
  type QueueUtils,
  type RunnerOptions,
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
import { startTestWorker, type TestWorker, type TestWorkerOptions } from "./test-worker.ts";

/** As for `run`. The database is `pgPool`, `connectionString` or DATABASE_URL; nothing is logged unless there is a `logger`. */
export interface TestQueueOptions extends Omit<RunnerOptions, "useNodeTime" | "events"> {
  /** An existing schema to use and to keep. If left out, a fresh one that `drop` deletes. */
  readonly schema?: string;
}

/** A queue for one test. */
export interface TestQueue {
  /** The name of the queue's schema. */
  readonly schema: string;
  /** Everything that `makeWorkerUtils` returns. */
  readonly utils: QueueUtils;
  readonly addJob: AddAnyJobFunction;
  readonly addJobs: AddAnyJobsFunction;
  /** Options for code under test that makes its own utils or runs its own worker on this queue. */
  readonly options: RunnerOptions;
  /** Moves the time of this process. Dropping the queue returns to the real time. */
  readonly clock: TestClock;
  /** Runs all jobs that are due and those that they add, each once: retries wait for the next call. */
  runDueJobs(options?: RunDueOptions): Promise<JobOutcome[]>;
  /** Runs this job now, even if it is not due, and no other. */
  runJob(job: string | Pick<Job, "id">): Promise<JobOutcome>;
  /** Returns all waiting and scheduled jobs with their payloads, oldest first. */
  jobs(task?: TestedTask): Promise<KeptJob[]>;
  /** Returns the first waiting job that is as expected; throws if there is none. */
  assertJobAdded<Task extends TestedTask>(task: Task, expected?: ExpectedJob<Task>): Promise<KeptJob>;
  /** Throws if a waiting job is as described. */
  assertNoJobAdded<Task extends TestedTask>(task: Task, unexpected?: ExpectedJob<Task>): Promise<void>;
  /** Starts your worker on this queue in a process of its own, which the test can kill, freeze and cut off. It ends with the queue. */
  startWorker(options: TestWorkerOptions): Promise<TestWorker>;
  /** Drops the fresh schema and disconnects. May be called twice. */
  drop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Opens a queue for one test, in a fresh schema of its own. A real worker on a real database claims, runs and settles its jobs, but
 * only when the test calls for it.
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
  const workers: Awaited<ReturnType<typeof startTestWorker>>[] = [];
  const drop = (): Promise<void> => {
    dropping ??= Promise.all(workers.map((worker) => worker.end())).then(() =>
      close(source, given.schema === undefined),
    );
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
    startWorker: async (workerOptions) => {
      const worker = await startTestWorker(source, await urlOf(source), workerOptions);
      workers.push(worker);
      return worker;
    },
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

/** Where the queue's connections lead to, whatever they were made from. */
async function urlOf({ utils }: RunSource): Promise<string> {
  const { host, port, user, password, database } = await utils.withPgClient(
    async (client) => client as unknown as Record<"host" | "port" | "user" | "password" | "database", string>,
  );
  if (host.startsWith("/"))
    throw new Error("A test worker needs a database that listens on TCP, not on a Unix socket.");
  const url = new URL(`postgres://localhost:${port}`);
  Object.assign(url, {
    hostname: host,
    username: user,
    password: password ?? "",
    pathname: encodeURIComponent(database),
  });
  return url.href;
}

async function close({ utils, escapedSchema }: RunSource, isFresh: boolean): Promise<void> {
  clock.reset();
  try {
    if (isFresh) await utils.withPgClient((client) => client.query(`drop schema if exists ${escapedSchema} cascade`));
  } finally {
    await utils.release();
  }
}
