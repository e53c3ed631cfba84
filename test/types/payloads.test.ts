import { expectTypeOf, test } from "vitest";
import type {
  AddBatchJobFunction,
  AddJobFunction,
  AddJobsFunction,
  AddJobsJobSpec,
  addJobAdhoc,
  DbJob,
  Job,
  JobHelpers,
  QueueUtils,
  RunnerOptions,
  SharedOptions,
  Task,
  TaskList,
} from "../../src/index.ts";

/*
 * Nothing here runs: `tsc` is the judge. A line marked as an expected error that compiles is an error itself.
 */

interface Greeting {
  name: string;
  times?: number;
}

declare global {
  namespace GraphileWorker {
    interface Tasks {
      "types:greet": Greeting;
      "types:mail": { to: string }[];
    }
  }
}

declare const addJob: AddJobFunction;
declare const addJobs: AddJobsFunction;
declare const addBatchJob: AddBatchJobFunction;
declare const adhoc: typeof addJobAdhoc;
declare const utils: QueueUtils;

/** Compiled, never called. */
const never = (check: () => unknown): void => void check;

test("addJob knows the payloads of registered tasks and lets any other through", () => {
  never(() => addJob("types:greet", { name: "Ada" }));
  never(() => addJob("types:greet", { name: "Ada", times: 2 }, { priority: 0, jobKeyMode: "preserve_run_at" }));
  never(() => addJob("anything else", 42));
  // @ts-expect-error: the payload is of another type
  never(() => addJob("types:greet", { name: 5 }));
  // @ts-expect-error: the name is missing
  never(() => addJob("types:greet", {}));
  // @ts-expect-error: no such key in a spec
  never(() => addJob("types:greet", { name: "Ada" }, { runat: new Date() }));
  // @ts-expect-error: no such key mode
  never(() => addJob("types:greet", { name: "Ada" }, { jobKeyMode: "keep" }));
  expectTypeOf<AddJobFunction>().returns.toEqualTypeOf<Promise<Job>>();
});

test("addJobs knows them too, job by job", () => {
  never(() =>
    addJobs([
      { identifier: "types:greet", payload: { name: "Ada" }, priority: 1 },
      { identifier: "types:mail", payload: [{ to: "ada" }] },
      { identifier: "anything else", payload: null },
    ]),
  );
  never(() => addJobs([], true));
  // @ts-expect-error: the payload is of another type
  never(() => addJobs([{ identifier: "types:mail", payload: { to: "ada" } }]));
  never(() => addJobs([{ identifier: "t", payload: {}, jobKeyMode: "replace" }]));
  // @ts-expect-error: this mode is for addJob only
  never(() => addJobs([{ identifier: "t", payload: {}, jobKeyMode: "unsafe_dedupe" }]));
  expectTypeOf<{ identifier: "types:greet"; payload: Greeting }>().toExtend<AddJobsJobSpec>();
});

test("addBatchJob takes the items of a task whose payload is an array", () => {
  never(() => addBatchJob("types:mail", [{ to: "ada" }]));
  never(() => addBatchJob("anything else", [1, "two"]));
  // @ts-expect-error: items of another type
  never(() => addBatchJob("types:mail", [{ from: "ada" }]));
  // @ts-expect-error: this task takes one greeting at a time
  never(() => addBatchJob("types:greet", [{ name: "Ada" }]));
});

test("addJobAdhoc and the utilities are typed alike", () => {
  never(() => adhoc({ connectionString: "" }, "types:greet", { name: "Ada" }));
  // @ts-expect-error: the payload is of another type
  never(() => adhoc({ connectionString: "" }, "types:greet", "Ada"));
  expectTypeOf<QueueUtils["addJob"]>().toExtend<AddJobFunction>();
  expectTypeOf<QueueUtils["addJobs"]>().toExtend<AddJobsFunction>();
  expectTypeOf<QueueUtils["removeJob"]>().returns.resolves.toEqualTypeOf<DbJob | null>();
  expectTypeOf<QueueUtils["completeJobs"]>().returns.resolves.toEqualTypeOf<DbJob[]>();
  never(() => utils.rescheduleJobs(["1"], { runAt: "2031-01-01", attempts: 0 }));
});

test("Task and TaskList know payloads and helpers", () => {
  const greet: Task<"types:greet"> = (payload, helpers) => {
    expectTypeOf(payload).toEqualTypeOf<Greeting>();
    expectTypeOf(helpers).toEqualTypeOf<JobHelpers>();
  };
  const list: TaskList = {
    "types:greet": greet,
    "types:mail": async (payload) => {
      expectTypeOf(payload).toEqualTypeOf<{ to: string }[]>();
    },
    other: (payload: { own: string }, { logger }) => logger.info(payload.own),
  };
  never(() => list);
  // @ts-expect-error: a greeting is not a number
  never((): TaskList => ({ "types:greet": (payload: number) => void payload }));
  const untyped: Task = (payload) => {
    expectTypeOf(payload).toBeUnknown();
  };
  never(() => untyped);
});

test("options are typed, directly and in a preset", () => {
  const options: RunnerOptions = {
    connectionString: "",
    concurrency: 3,
    forbiddenFlags: async () => ["gpu"],
    recovery: { sweepThreshold: 60_000 },
    taskList: {},
    preset: { worker: { concurrentJobs: 4, localQueue: { size: 10 }, cron: [{ task: "t", match: "* * * * *" }] } },
  };
  expectTypeOf(options).toExtend<SharedOptions>();
  // @ts-expect-error: a number is expected
  never((): RunnerOptions => ({ pollInterval: "2 s" }));
  // @ts-expect-error: no such option
  never((): GraphileConfig.Preset => ({ worker: { concurrentJob: 4 } }));
});

test("lists of jobs that were made elsewhere are taken as they are", () => {
  const specs: AddJobsJobSpec[] = [{ identifier: "t", payload: {} }];
  const names = ["a", "b"].map((identifier) => ({ identifier, payload: { identifier }, runAt: new Date() }));
  never(() => addJobs(specs));
  never(() => addJobs(names, true));
  const own: AddJobsFunction = async (jobSpecs) => {
    for (const { identifier, payload } of jobSpecs) void [identifier satisfies string, payload];
    return [];
  };
  never(() => own);
});

test("guards of an add are typed, and so is what a skipped add returns", () => {
  never(() => addJob("any", {}, { debounce: { key: "k", delay: "5s", maxWait: 60_000 } }));
  never(() => addJobs([{ identifier: "any", payload: {}, singleton: { key: "k", onConflict: "cancelRunning" } }]));
  never(() => utils.addJob("any", {}, { throttle: { key: "k", period: "24h" } }));
  // @ts-expect-error: a period is missing
  never(() => addJob("any", {}, { throttle: { key: "k" } }));
  // @ts-expect-error: there is no such way out
  never(() => addJob("any", {}, { singleton: { key: "k", onConflict: "abort" } }));
  expectTypeOf<Job["skipped"]>().toEqualTypeOf<"throttle" | "singleton" | undefined>();
});
