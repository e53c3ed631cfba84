import { type } from "arktype";
import * as v from "valibot";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AnyTaskDefinition,
  defineTask,
  getTasks,
  JobSpecError,
  makeWorkerUtils,
  PayloadError,
  type QueueUtils,
  runOnce,
  type StandardSchema,
  type TaskListInput,
} from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { makeProject } from "../support/project.ts";
import { sharedDatabase } from "../support/shared-database.ts";

const { logger } = rememberingLogger();
const shared = sharedDatabase();

async function open(db: TestDatabase = shared()): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger });
  onTestFinished(() => utils.release());
  return utils;
}

async function drain(db: TestDatabase, taskList: TaskListInput): Promise<void> {
  await runOnce({ pgPool: db.pool, logger, taskList, noHandleSignals: true });
}

const orderSchemas: [string, StandardSchema<{ id: number; items: { sku: string }[] }, unknown>][] = [
  ["zod", z.object({ id: z.number(), items: z.array(z.object({ sku: z.string() })) })],
  ["valibot", v.object({ id: v.number(), items: v.array(v.object({ sku: v.string() })) })],
  ["arktype", type({ id: "number", items: type({ sku: "string" }).array() })],
];

test.each(orderSchemas)("a payload that %s refuses is not added, and the error names the place", async (_, payload) => {
  const utils = await open();
  const order = defineTask({ identifier: "order:refused", payload, run: () => undefined });
  const items = [{ sku: "a" }, { sku: 5 }];
  const refused = utils.addJob(order, { id: 1, items } as never);
  await expect(refused).rejects.toThrow(PayloadError);
  await expect(refused).rejects.toThrow(/^The payload does not fit task 'order:refused': 'items\[1\]\.sku': .+\.$/);
  await expect(refused).rejects.toMatchObject({ code: "BAD_PAYLOAD", issues: [{ path: "items[1].sku" }] });
  expect((await utils.listJobs({ task: "order:refused" })).jobs).toEqual([]);
});

test.each(orderSchemas)("a payload that %s takes is added as it was given", async (_, payload) => {
  const utils = await open();
  const order = defineTask({ identifier: "order", payload, run: () => undefined });
  const job = await utils.addJob(order, { id: 1, items: [{ sku: "a" }], extra: true } as never);
  expect(job.task_identifier).toBe("order");
  expect(job.payload).toEqual({ id: 1, items: [{ sku: "a" }], extra: true });
});

test("what runs is what the validator makes of the stored payload", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const seen: unknown[] = [];
  const remind = defineTask({
    identifier: "remind",
    payload: z.object({ at: z.iso.datetime().transform((text) => new Date(text)), times: z.number().default(3) }),
    run: (payload, { job }) => seen.push(payload, job.payload),
  });
  await remind.add(utils, { at: "2031-01-01T00:00:00Z" });
  await drain(db, [remind]);
  expect(seen).toEqual([{ at: new Date("2031-01-01"), times: 3 }, { at: "2031-01-01T00:00:00Z" }]);
});

test("a payload is checked as it comes back from JSON, so that a Date is refused before it is written", async () => {
  const utils = await open();
  const dated = defineTask({ identifier: "dated", payload: z.object({ at: z.date() }), run: () => undefined });
  await expect(utils.addJob(dated, { at: new Date() })).rejects.toThrow(/'at': .*expected date/i);
  const big = defineTask<{ id: bigint }>({ identifier: "big", run: () => undefined });
  await expect(utils.addJob(big, { id: 5n })).rejects.toThrow(JobSpecError);
});

test("no payload stands for an empty object", async () => {
  const utils = await open();
  const tidy = defineTask({ identifier: "tidy", payload: type({ "days?": "number" }), run: () => undefined });
  expect((await utils.addJob(tidy, undefined as never)).payload).toEqual({});
});

test("validation may be asynchronous", async () => {
  const utils = await open();
  const known = z.object({ user: z.string() }).refine(async ({ user }) => user === "ada", "unknown user");
  const greet = defineTask({ identifier: "greet", payload: known, run: () => undefined });
  await expect(utils.addJob(greet, { user: "bob" })).rejects.toThrow(
    "The payload does not fit task 'greet': unknown user.",
  );
  await expect(utils.addJob(greet, { user: "ada" })).resolves.toMatchObject({ payload: { user: "ada" } });
});

test("the definition's defaults apply, also as functions of the payload, and what a job says itself is stronger", async () => {
  const utils = await open();
  const bill = defineTask({
    identifier: "bill",
    payload: z.object({ customer: z.string(), month: z.number().default(1) }),
    maxAttempts: 3,
    priority: 7,
    flags: ["money"],
    queueName: ({ customer }) => `customer:${customer}`,
    jobKey: ({ customer, month }) => `bill:${customer}:${month}`,
    run: () => undefined,
  });
  const job = await utils.addJob(bill, { customer: "ada" });
  expect(job).toMatchObject({ max_attempts: 3, priority: 7, flags: { money: true }, key: "bill:ada:1" });
  expect((await utils.getJob(job.id))?.queue_name).toBe("customer:ada");
  const other = await utils.addJob(
    bill,
    { customer: "ada" },
    { priority: 0, maxAttempts: 1, flags: [], queueName: "own", jobKey: "own" },
  );
  expect(other).toMatchObject({ max_attempts: 1, priority: 0, key: "own" });
  expect(other.flags ?? {}).toEqual({});
  expect((await utils.getJob(other.id))?.queue_name).toBe("own");
  const unkeyed = await utils.addJob(bill, { customer: "ada" }, { jobKey: undefined, queueName: null } as never);
  expect(unkeyed.id).toBe(job.id);
  expect((await utils.getJob(unkeyed.id))?.queue_name).toBeNull();
});

test("addJobs takes a mixture, in order, and writes nothing if one payload does not fit", async () => {
  const utils = await open(await freshDatabase());
  const add = defineTask({
    identifier: "add",
    payload: v.object({ n: v.number() }),
    priority: 4,
    run: () => undefined,
  });
  const specs = (n: unknown) =>
    [
      { identifier: add, payload: { n: 1 } },
      { identifier: "plain", payload: { anything: true } },
      { identifier: add, payload: { n: n as number }, priority: 9, queueName: "q" },
    ] as const;
  await expect(utils.addJobs(specs("two"))).rejects.toThrow(
    /^Job 2 of 3: The payload does not fit task 'add': 'n': .*number/,
  );
  expect((await utils.listJobs()).jobs).toEqual([]);
  const jobs = await utils.addJobs(specs(2));
  expect(jobs.map(({ task_identifier, priority }) => [task_identifier, priority])).toEqual([
    ["add", 4],
    ["plain", 0],
    ["add", 9],
  ]);
});

test("tasks add typed jobs through their helpers, and a transaction takes them with it", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const done: string[] = [];
  const second = defineTask<{ name: string }>({ identifier: "second", run: ({ name }) => done.push(name) });
  const first = defineTask<{ name: string }>({
    identifier: "first",
    run: async ({ name }, helpers) => void (await second.add(helpers, { name: `${name}!` })),
  });
  const client = await db.pool.connect();
  await client.query("begin");
  await utils.withTransaction(client).addJob(first, { name: "rolled back" });
  await client.query("rollback");
  await client.query("begin");
  await first.add(utils.withTransaction(client), { name: "kept" });
  await client.query("commit");
  client.release();
  await drain(db, [first, second]);
  expect(done).toEqual(["kept!"]);
});

test("a waiting payload that no longer fits fails with the place, and stays for the next build", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const { id } = await utils.addJob("sum", { terms: [1, "two"] });
  const sum = (terms: StandardSchema): AnyTaskDefinition =>
    defineTask({ identifier: "sum", payload: terms, run: () => undefined });
  await drain(db, [sum(z.object({ terms: z.array(z.number()) }))]);
  const failed = await db.job(id);
  expect(failed?.last_error).toMatch(/^The payload does not fit task 'sum': 'terms\[1\]': .*expected number/);
  expect(failed?.payload).toEqual({ terms: [1, "two"] });
  await utils.rescheduleJobs([id], { runAt: new Date() });
  await drain(db, [sum(z.object({ terms: z.array(z.unknown()) }))]);
  expect(await db.job(id)).toBeUndefined();
});

test("older payloads climb every step from the newest old shape they fit, and new jobs must have the new one", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const seen: unknown[] = [];
  const steps: string[] = [];
  const welcome = defineTask({
    identifier: "welcome",
    payload: z.strictObject({ first: z.string(), last: z.string() }),
    upgrade: [
      {
        from: z.strictObject({ fullName: z.string() }),
        to: ({ fullName }) => {
          steps.push("1→2");
          return { name: fullName };
        },
      },
      {
        from: v.strictObject({ name: v.string() }),
        to: async ({ name }) => {
          steps.push("2→3");
          const [first, last] = name.split(" ");
          return { first, last };
        },
      },
    ],
    run: (payload) => seen.push(payload),
  });
  await utils.addJobs([
    { identifier: "welcome", payload: { fullName: "Ada Lovelace" } },
    { identifier: "welcome", payload: { name: "Alan Turing" } },
    { identifier: welcome, payload: { first: "Grace", last: "Hopper" } },
    { identifier: "welcome", payload: { name: "Plato" } },
    { identifier: "welcome", payload: { nick: "zoe" } },
  ]);
  await expect(utils.addJob(welcome, { name: "Alan Turing" } as never)).rejects.toThrow(PayloadError);
  await drain(db, [welcome]);
  expect(seen).toEqual([
    { first: "Ada", last: "Lovelace" },
    { first: "Alan", last: "Turing" },
    { first: "Grace", last: "Hopper" },
  ]);
  expect(steps).toEqual(["1→2", "2→3", "2→3", "2→3"]);
  const left = await db.jobs();
  expect(left.map((job) => [job.payload, job.last_error])).toEqual([
    [{ name: "Plato" }, expect.stringMatching(/'last': /)],
    [{ nick: "zoe" }, expect.stringMatching(/'first': .*'last': /)],
  ]);
});

test("recurring jobs fit a strict validator, which may ask for what the scheduler adds", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const seen: unknown[] = [];
  const strict = defineTask({
    identifier: "strict",
    payload: z.strictObject({ to: z.string() }),
    run: (payload) => seen.push(payload),
  });
  const curious = defineTask({
    identifier: "curious",
    payload: z.strictObject({ _cron: z.object({ ts: z.coerce.date() }) }),
    run: (payload) => seen.push(payload),
  });
  const _cron = { ts: "2031-01-01T00:00:00.000Z", backfilled: false };
  await utils.addJob("strict", { to: "ada", _cron });
  await utils.addJob("curious", { _cron });
  await utils.addJob("strict", { _cron });
  await drain(db, [strict, curious]);
  expect(seen).toEqual([{ to: "ada" }, { _cron: { ts: new Date("2031-01-01") } }]);
  expect((await db.jobs()).map(({ last_error }) => last_error)).toEqual([
    expect.stringMatching(/task 'strict': 'to': /),
  ]);
});

test("hooks see the name, the payload and the spec with the defaults in it", async () => {
  const asked: unknown[] = [];
  const utils = await makeWorkerUtils({
    pgPool: shared().pool,
    logger,
    preset: {
      worker: {
        hooks: { beforeJobSchedule: ({ identifier, payload, spec }) => void asked.push(identifier, payload, spec) },
      },
    },
  });
  onTestFinished(() => utils.release());
  const hooked = defineTask<{ n: number }>({
    identifier: "hooked",
    queueName: ({ n }) => `q${n}`,
    run: () => undefined,
  });
  await utils.addJob(hooked, { n: 1 }, { priority: 2 });
  await utils.addJobs([{ identifier: hooked, payload: { n: 2 } }]);
  expect(asked).toEqual([
    "hooked",
    { n: 1 },
    { queueName: "q1", priority: 2 },
    "hooked",
    { n: 2 },
    { queueName: "q2" },
  ]);
});

test("a task list may be a record, a list, or mix definitions and functions; a definition answers to its own name", async () => {
  const db = await freshDatabase();
  const utils = await open(db);
  const done: string[] = [];
  const sendMail = defineTask({ identifier: "send-mail", run: () => done.push("mail") });
  const plain = (): void => void done.push("plain");
  await utils.addJobs([
    { identifier: sendMail, payload: {} },
    { identifier: "plain", payload: {} },
  ]);
  await drain(db, { sendMail, plain });
  await utils.addJobs([
    { identifier: sendMail, payload: {} },
    { identifier: "plain", payload: {} },
  ]);
  await drain(db, [sendMail, { plain }]);
  expect(done).toEqual(["mail", "plain", "mail", "plain"]);
  const twin = defineTask({ identifier: "send-mail", run: () => undefined });
  await expect(drain(db, [sendMail, twin])).rejects.toThrow("Two tasks are called 'send-mail': rename one of them.");
});

test("task files may export definitions, whose name must be the file's", async () => {
  const library = new URL("../../src/tasks/define-task.ts", import.meta.url).pathname;
  const source = (identifier: string): string =>
    `import { defineTask } from ${JSON.stringify(library)};
     export default defineTask<{ id: number }>({ identifier: "${identifier}", run: ({ id }) => id });`;
  const { folder, path } = await makeProject({
    "good/users/greet.ts": source("users/greet"),
    "bad/greet.ts": source("hello"),
    "all.ts": `import { defineTask } from ${JSON.stringify(library)};
      export const greet = defineTask({ identifier: "users:greet", run: () => 1 });
      export const plain = () => 2;`,
  });
  const { tasks } = await getTasks({ logger }, path("good"));
  expect(Object.keys(tasks)).toEqual(["users/greet"]);
  expect(await tasks["users/greet"]?.({ id: 5 }, {} as never)).toBe(5);
  await expect(getTasks({ logger }, path("bad"))).rejects.toThrow(
    `'${folder}/bad/greet.ts' is the file of task 'greet', but defines task 'hello': rename one of them.`,
  );
  const { tasks: listed } = await getTasks({ logger }, path("all.ts"));
  expect(Object.keys(listed).sort()).toEqual(["plain", "users:greet"]);
});

test("a definition that cannot work is refused at once", () => {
  expect(() => defineTask({ identifier: "", run() {} })).toThrow("'identifier' of a task must be a non-empty string");
  expect(() => defineTask({ identifier: "t" } as never)).toThrow(
    "'run' of task 't' must be a function, got undefined.",
  );
  expect(() => defineTask({ identifier: "t", upgrade: [{}], run() {} } as never)).toThrow(
    "no validator as its 'payload'",
  );
});
