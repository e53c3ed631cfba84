import type {
  AddJobFunction,
  AddJobsFunction,
  JobHelpers,
  RunnerOptions,
  Task,
  TaskList,
  TaskSpec,
  WorkerUtilsOptions,
} from "graphile-worker";
import "./payloads.js";

/* Never called: what the compiler has to refuse, and what it has to accept. */

export async function addWrongly(addJob: AddJobFunction, addJobs: AddJobsFunction): Promise<void> {
  // @ts-expect-error: the subject is missing
  await addJob("send-email", { to: "ada" });
  // @ts-expect-error: failures are counted
  await addJob("flaky", { failures: "many" });
  // @ts-expect-error: there is no such mode
  await addJob("flaky", { failures: 1 }, { jobKeyMode: "nonsense" });
  // @ts-expect-error: a moment is a Date
  await addJob("flaky", { failures: 1 }, { runAt: "tomorrow" });
  // @ts-expect-error: this mode is for single jobs
  await addJobs([{ identifier: "flaky", payload: { failures: 1 }, jobKeyMode: "unsafe_dedupe" }]);
  await addJob("unregistered", { anything: true });
  await addJobs([{ identifier: "flaky", payload: { failures: 1 }, queueName: "q" }], true);
}

export const registered: TaskList = {
  flaky: ({ failures }) => console.log(failures.toFixed()),
  unregistered: (payload, { job }) => console.log(payload, job.id),
};

// @ts-expect-error: a task of this name is given failures
export const wrong: Task<"flaky"> = (payload: { successes: number }) => console.log(payload);

// @ts-expect-error: a spec has no such key
export const spec: TaskSpec = { jobKye: "a" };

export const utilsOptions: WorkerUtilsOptions = { maxPoolSize: 2, noPreparedStatements: true };

export const options: RunnerOptions = {
  forbiddenFlags: async () => ["slow"],
  concurrency: 3,
  // @ts-expect-error: a number of milliseconds
  pollInterval: "2s",
};

export const preset: GraphileConfig.Preset = {
  worker: {
    localQueue: { size: 10, ttl: 1_000, refetchDelay: { durationMs: 100, threshold: 1, maxAbortThreshold: 5 } },
    completeJobBatchDelay: 0,
    // @ts-expect-error: there is no such option
    concurrency: 3,
  },
};

export function helpersOf({ job, getQueueName, withPgClient }: JobHelpers): [string, unknown, typeof withPgClient] {
  // @ts-expect-error: a job has no such column
  void job.nonsense;
  return [job.id, getQueueName(), withPgClient];
}
