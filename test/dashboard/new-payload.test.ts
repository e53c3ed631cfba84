import { type } from "arktype";
import { object, string } from "valibot";
import { expect, test } from "vitest";
import { z } from "zod";
import type { ActionResult, ApiError, AuditPage, PayloadCheck, PayloadForm } from "../../src/dashboard/contract.ts";
import { defineBatchTask, defineTask, makeWorkerUtils } from "../../src/index.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { openDesk } from "./kit.ts";

const database = sharedDatabase();
const run = (): void => undefined;
const tasks = {
  zod: defineTask({
    identifier: "zod",
    payload: z.object({ amount: z.number(), lines: z.array(z.object({ sku: z.string() })).optional() }),
    run,
  }),
  arktype: defineTask({ identifier: "arktype", payload: type({ token: "'abc' | 'def'", "n?": "number" }), run }),
  valibot: defineTask({ identifier: "valibot", payload: object({ name: string() }), run }),
  batch: defineBatchTask({ identifier: "batch", item: z.object({ id: z.number() }), run }),
  defined: defineTask({ identifier: "defined", run }),
  plain: run,
  huge: defineTask({
    identifier: "huge",
    payload: z.object({ choice: z.enum(Array.from({ length: 9_000 }, (_, n) => `choice-${n}`) as [string]) }),
    run,
  }),
  odd: defineTask({ identifier: "odd", payload: z.object({ at: z.date() }), run }),
};

test("the form of a task says what is known of its payload", async () => {
  const desk = openDesk(database(), { tasks });
  const form = async (task: string): Promise<PayloadForm> => (await desk.get<PayloadForm>(`form?task=${task}`)).body;
  expect(await form("zod")).toMatchObject({
    task: "zod",
    isKnown: true,
    isChecked: true,
    schema: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
  });
  expect(await form("arktype")).toMatchObject({
    isChecked: true,
    schema: { type: "object", properties: { n: { type: "number" } }, required: ["token"] },
  });
  expect(await form("batch")).toMatchObject({ schema: { type: "array", items: { type: "object" }, minItems: 1 } });
  // Its library cannot tell; or nobody could read it; or there is no word for it.
  for (const task of ["valibot", "huge", "odd"])
    expect(await form(task)).toEqual({ task, isKnown: true, isChecked: true, schema: null });
  for (const task of ["defined", "plain"])
    expect(await form(task)).toEqual({ task, isKnown: true, isChecked: false, schema: null });
  for (const task of ["elsewhere", "constructor"])
    expect(await form(task)).toEqual({ task, isKnown: false, isChecked: false, schema: null });
});

test("a payload is checked before it is added, by whatever validator the task has, and nothing is written", async () => {
  const desk = openDesk(database(), { tasks });
  const check = async (task: string, payload: unknown): Promise<PayloadCheck> =>
    (await desk.post<PayloadCheck>("check", { task, payload })).body;
  expect(await check("zod", { amount: "ten", lines: [{ sku: 1 }] })).toEqual({
    isChecked: true,
    issues: [
      { path: "amount", message: expect.stringContaining("number") },
      { path: "lines[0].sku", message: expect.stringContaining("string") },
    ],
  });
  expect(await check("zod", { amount: 10 })).toEqual({ isChecked: true, issues: [] });
  expect((await check("valibot", {})).issues).toMatchObject([{ path: "name" }]);
  expect((await check("arktype", { token: 5 })).issues).toMatchObject([{ path: "token" }]);
  expect((await check("batch", [{ id: 1 }, {}])).issues).toMatchObject([{ path: "[1].id" }]);
  for (const task of ["plain", "defined", "elsewhere", "constructor"])
    expect(await check(task, { any: "thing" })).toEqual({ isChecked: false, issues: [] });
  expect(await database().jobs()).toEqual([]);
  expect((await desk.get<AuditPage>("audit")).body.entries).toEqual([]);
});

test("what a validator says of a hidden value is not told, neither to who asks nor in the audit", async () => {
  const desk = openDesk(database(), { tasks });
  const utils = await makeWorkerUtils({ pgPool: database().pool, logger: rememberingLogger().logger });
  // It was added before the task had its validator.
  const { id: copyOf } = await utils.addJob("arktype", { token: "s3cret" });
  const body = { task: "arktype", payload: { token: "•••", n: "many" }, copyOf };
  const told = await desk.post<PayloadCheck>("check", body);
  expect(told.body.issues.map(({ path }) => path).sort()).toEqual(["n", "token"]);
  const refused = await desk.post<ApiError>("actions/add", body);
  expect(refused.status).toBe(400);
  expect(refused.body.error.message).toContain("A hidden value does not fit");
  const audit = await desk.get<AuditPage>("audit");
  expect(audit.body.entries).toHaveLength(1);
  expect(JSON.stringify([told.body, refused.body, audit.body])).not.toContain("s3cret");
  // Without a job to copy from there are no hidden values.
  expect((await desk.post("check", { ...body, copyOf: undefined })).status).toBe(400);
  const added = await desk.post<ActionResult>("actions/add", { ...body, payload: { token: "abc", n: 1 } });
  expect(added.body.changed).toBe(1);
});
