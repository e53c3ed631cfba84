import { type } from "arktype";
import * as v from "valibot";
import { expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  type AddJobFunction,
  type AddJobsFunction,
  addJobAdhoc,
  defineBatchTask,
  defineTask,
  type Job,
  type QueueUtils,
  type Runner,
  type RunnerOptions,
  type Task,
  type TaskHelpers,
  type TaskInput,
  type TaskList,
  type TaskPayload,
} from "../../src/index.ts";

/*
 * Nothing here runs: `tsc` is the judge. A line marked as an expected error that compiles is an error itself.
 */

declare global {
  namespace GraphileWorker {
    interface Tasks {
      "types:registered": { id: number };
    }
  }
}

declare const utils: QueueUtils;
declare const helpers: TaskHelpers;
declare const runner: Runner;

/** Compiled, never called. */
const never = (check: () => unknown): void => void check;

const mail = defineTask({
  identifier: "mail",
  payload: z.object({ to: z.string(), at: z.coerce.date().optional(), copies: z.number().default(1) }),
  queueName: ({ to }) => to,
  jobKey: (payload) => `${payload.copies}`,
  run: async (payload, jobHelpers) => {
    expectTypeOf(payload).toEqualTypeOf<{ to: string; at?: Date | undefined; copies: number }>();
    expectTypeOf(jobHelpers).toEqualTypeOf<TaskHelpers>();
    return "sent";
  },
});
const resize = defineTask({
  identifier: "resize",
  payload: v.object({ width: v.number(), unit: v.optional(v.picklist(["px", "em"]), "px") }),
  run: ({ width, unit }) => {
    expectTypeOf(width).toEqualTypeOf<number>();
    expectTypeOf(unit).toEqualTypeOf<"px" | "em">();
  },
});
const tidy = defineTask({
  identifier: "tidy",
  payload: type({ "days?": "number" }),
  run: (payload) => expectTypeOf(payload).toEqualTypeOf<{ days?: number }>(),
});
const plain = defineTask<{ id: number }>({
  identifier: "plain",
  run: (payload) => expectTypeOf(payload).toEqualTypeOf<{ id: number }>(),
});
const anything = defineTask({ identifier: "anything", run: (payload) => expectTypeOf(payload).toBeUnknown() });
const mails = defineBatchTask({
  identifier: "mails",
  item: z.object({ to: z.string(), copies: z.number().default(1) }),
  run: async (items) => {
    expectTypeOf(items).toEqualTypeOf<readonly { to: string; copies: number }[]>();
    return Promise.allSettled(items.map(async () => undefined));
  },
});

test("a definition knows what jobs are added with and what its task is handed", () => {
  expectTypeOf<TaskInput<typeof mail>>().toEqualTypeOf<{ to: string; at?: unknown; copies?: number | undefined }>();
  expectTypeOf<TaskPayload<typeof mail>>().toEqualTypeOf<{ to: string; at?: Date | undefined; copies: number }>();
  expectTypeOf<TaskInput<typeof resize>>().toEqualTypeOf<{ width: number; unit?: "px" | "em" | undefined }>();
  expectTypeOf<TaskInput<typeof plain>>().toEqualTypeOf<{ id: number }>();
  expectTypeOf<TaskInput<typeof mails>>().toEqualTypeOf<readonly { to: string; copies?: number | undefined }[]>();
});

test("addJob takes a definition everywhere, and holds the payload to it", () => {
  never(() => utils.addJob(mail, { to: "ada", at: "2031-01-01" }, { priority: 3, jobKeyMode: "replace" }));
  never(() => utils.withTransaction({} as never).addJob(resize, { width: 3 }));
  never(() => helpers.addJob(tidy, {}));
  never(() => runner.addJob(plain, { id: 3 }));
  never(() => addJobAdhoc({}, mail, { to: "ada" }));
  never(() => mail.add(utils, { to: "ada" }, { runAt: new Date() }));
  never(() => mails.add(helpers, [{ to: "ada" }]));
  never(() => utils.addBatchJob(mails, [{ to: "ada" }]));
  never(() => utils.addJob(anything, 42));
  never(() => expectTypeOf(utils.addJob(mail, { to: "ada" })).toEqualTypeOf<Promise<Job>>());
  // @ts-expect-error: the address is missing
  never(() => utils.addJob(mail, {}));
  // @ts-expect-error: a width is a number
  never(() => helpers.addJob(resize, { width: "3" }));
  // @ts-expect-error: not one of the units
  never(() => runner.addJob(resize, { width: 3, unit: "cm" }));
  // @ts-expect-error: of another type
  never(() => plain.add(utils, { id: "3" }));
  // @ts-expect-error: no such key in a spec
  never(() => mail.add(utils, { to: "ada" }, { runat: new Date() }));
  // @ts-expect-error: a batch is an array
  never(() => utils.addJob(mails, { to: "ada" }));
  // @ts-expect-error: items of another type
  never(() => utils.addBatchJob(mails, [{ from: "ada" }]));
  // @ts-expect-error: of another type
  never(() => addJobAdhoc({}, mail, { to: 5 }));
});

test("addJobs takes names and definitions in any mixture, each with its own payload", () => {
  never(() =>
    utils.addJobs([
      { identifier: mail, payload: { to: "ada" }, priority: 2 },
      { identifier: "types:registered", payload: { id: 5 } },
      { identifier: resize, payload: { width: 5 } },
      { identifier: "anything else", payload: null },
    ]),
  );
  never(() => helpers.addJobs(["ada", "bob"].map((to) => ({ identifier: mail, payload: { to } }))));
  // @ts-expect-error: the second payload is of another type
  never(() => utils.addJobs([{ identifier: mail, payload: { to: "a" } }, { identifier: resize, payload: {} }])); // biome-ignore format: one line for the expected error
  // @ts-expect-error: a registered payload beside a definition
  never(() => utils.addJobs([{ identifier: mail, payload: { to: "a" } }, { identifier: "types:registered", payload: {} }])); // biome-ignore format: one line for the expected error
  never(() => utils.addJobs([{ identifier: mail, payload: { to: "a" }, jobKeyMode: "replace" }]));
  // @ts-expect-error: this mode is for addJob only
  never(() => utils.addJobs([{ identifier: mail, payload: { to: "a" }, jobKeyMode: "unsafe_dedupe" }]));
});

test("names work as before, in calls, in wrappers and in declared functions", () => {
  never(() => utils.addJob("types:registered", { id: 5 }));
  never(() => utils.addJob("any name", "any payload"));
  // @ts-expect-error: the payload is of another type
  never(() => utils.addJob("types:registered", { id: "5" }));
  never((): AddJobFunction => utils.addJob);
  never((): AddJobsFunction => utils.addJobs);
  const declared: AddJobFunction = (identifier, payload, spec) => utils.addJob(identifier, payload, spec);
  const generic = <Name extends keyof GraphileWorker.Tasks | (string & {})>(
    name: Name,
    payload: Name extends keyof GraphileWorker.Tasks ? GraphileWorker.Tasks[Name] : unknown,
  ): Promise<Job> => helpers.addJob(name, payload);
  never(() => [declared, generic]);
  expectTypeOf<Parameters<TaskHelpers["addJob"]>[0]>().toExtend<string>();
});

test("definitions are tasks, and stand in task lists with plain functions", () => {
  const task: Task = mail;
  const record: TaskList = { mail, other: (payload: { own: string }) => void payload };
  const options: RunnerOptions[] = [
    { taskList: record },
    { taskList: [mail, resize, { other: async () => undefined }] },
  ];
  never(() => [task, options]);
});

test("options of a definition are held to the payload", () => {
  // @ts-expect-error: the payload has no such property
  never(() => defineTask({ identifier: "t", payload: z.object({ a: z.string() }), queueName: ({ b }) => b, run() {} }));
  // @ts-expect-error: a payload is given by a validator or by a type, not by an example
  never(() => defineTask({ identifier: "t", payload: { a: "text" }, run() {} }));
  // @ts-expect-error: nothing to upgrade to
  never(() => defineTask<{ a: string }>({ identifier: "t", upgrade: [], run() {} }));
  // @ts-expect-error: one result is no list of results
  never(() => defineBatchTask({ identifier: "t", item: z.string(), run: async () => ({ ok: true }) }));
  defineBatchTask<string>({
    identifier: "t",
    run: (items) => items.map((item) => (item === "" ? { ok: false, error: "empty" } : { ok: true })),
  });
});

test("each upgrade knows its own older payload", () => {
  defineTask({
    identifier: "t",
    payload: z.object({ first: z.string(), last: z.string() }),
    upgrade: [
      {
        from: z.object({ fullName: z.string() }),
        to: (old) => {
          expectTypeOf(old).toEqualTypeOf<{ fullName: string }>();
          return { name: old.fullName };
        },
      },
      {
        from: v.object({ name: v.string() }),
        to: (old) => {
          expectTypeOf(old).toEqualTypeOf<{ name: string }>();
          return { first: old.name, last: "" };
        },
      },
    ],
    run: ({ first, last }) => void [first, last],
  });
});
