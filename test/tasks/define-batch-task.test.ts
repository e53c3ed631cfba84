import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  type AnyTaskDefinition,
  defineBatchTask,
  type ItemResult,
  makeWorkerUtils,
  type QueueUtils,
  runOnce,
} from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

const { logger } = rememberingLogger();

async function start(): Promise<{
  db: TestDatabase;
  utils: QueueUtils;
  drain(task: AnyTaskDefinition): Promise<void>;
}> {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger });
  onTestFinished(() => utils.release());
  return {
    db,
    utils,
    drain: (task) => runOnce({ pgPool: db.pool, logger, taskList: [task], noHandleSignals: true }),
  };
}

const address = z.object({ to: z.string(), copies: z.number().default(1) });
type Address = z.output<typeof address>;

const failB: [string, (items: readonly Address[]) => Promise<ItemResult[]> | ItemResult[]][] = [
  ["as promises", (items) => items.map(async ({ to }) => (to === "b" ? Promise.reject(new Error("no b")) : "sent"))],
  ["as settled promises", async (items) =>
    await Promise.allSettled(items.map(async ({ to }) => (to === "b" ? Promise.reject(new Error("no b")) : "sent")))],
  ["as ok and error", (items) => items.map(({ to }) => (to === "b" ? { ok: false, error: "no b" } : { ok: true }))],
]; // biome-ignore format: a table

test.each(failB)("items that failed are tried again without the others, told %s", async (_, run) => {
  const { db, utils, drain } = await start();
  const mails = defineBatchTask({ identifier: "mails", item: address, run });
  const { id } = await utils.addJob(mails, [{ to: "a" }, { to: "b" }, { to: "c", copies: 2 }]);
  await drain(mails);
  const left = await db.job(id);
  expect(left?.payload).toEqual([{ to: "b" }]);
  expect(left?.last_error).toContain("no b");
});

test("nothing returned means that all items are done; items are what the validator makes of them", async () => {
  const { db, utils, drain } = await start();
  const seen: unknown[] = [];
  const mails = defineBatchTask({ identifier: "mails", item: address, run: (items) => void seen.push(...items) });
  await utils.addBatchJob(mails, [{ to: "a" }], { jobKey: "k" });
  await utils.addBatchJob(mails, [{ to: "b" }], { jobKey: "k" });
  await drain(mails);
  expect(seen).toEqual([
    { to: "a", copies: 1 },
    { to: "b", copies: 1 },
  ]);
  expect(await db.jobs()).toEqual([]);
});

test("a batch that throws, or answers for another number of items, fails as a whole", async () => {
  const { db, utils, drain } = await start();
  const throws = defineBatchTask<number>({
    identifier: "throws",
    run: () => {
      throw new Error("all of it");
    },
  });
  const short = defineBatchTask<number>({ identifier: "short", run: () => [{ ok: true }] });
  await throws.add(utils, [1, 2]);
  await short.add(utils, [1, 2]);
  await drain(throws);
  await drain(short);
  expect((await db.jobs()).map((job) => [job.payload, job.last_error])).toEqual([
    [[1, 2], "all of it"],
    [[1, 2], "Task 'short' must return nothing, or one result for each of its 2 items, got 1 results."],
  ]);
});

test("items that do not fit fail alone, with their place; the others are done", async () => {
  const { db, utils, drain } = await start();
  const seen: string[] = [];
  const mails = defineBatchTask({
    identifier: "mails",
    item: address,
    run: (items) => void seen.push(...items.map(({ to }) => to)),
  });
  const { id } = await utils.addJob("mails", [{ to: "a" }, { to: 5 }, { to: "c" }, "d"]);
  await drain(mails);
  expect(seen).toEqual(["a", "c"]);
  const left = await db.job(id);
  expect(left?.payload).toEqual([{ to: 5 }, "d"]);
  expect(left?.last_error).toMatch(/'\[1\]\.to': .*string[\s\S]*'\[3\]': /);
});

test("an upgrade that throws fails its own item, and only what says that it failed has failed", async () => {
  const { db, utils, drain } = await start();
  const mails = defineBatchTask({
    identifier: "mails",
    item: z.strictObject({ to: z.string() }),
    upgrade: [
      {
        from: z.string(),
        to: () => {
          throw new Error("too old");
        },
      },
    ],
    run: (items) =>
      items.map(async ({ to }) => (to === "c" ? { ok: false, error: "no c" } : { ok: false, status: 404 })),
  });
  const { id } = await utils.addJob("mails", [{ to: "a" }, "old", { to: "c" }]);
  await drain(mails);
  const left = await db.job(id);
  expect(left?.payload).toEqual(["old", { to: "c" }]);
  expect(left?.last_error).toMatch(/'\[1\]': too old[\s\S]*no c/);
});

test("a payload that is no list of items fails, and is not added", async () => {
  const { db, utils, drain } = await start();
  const mails = defineBatchTask({ identifier: "mails", item: address, run: () => undefined });
  await expect(utils.addJob(mails, [])).rejects.toThrow("It must be an array with at least one item");
  await expect(utils.addJob(mails, { to: "a" } as never)).rejects.toThrow("It must be an array");
  await expect(utils.addBatchJob(mails, [])).rejects.toThrow("A batch for task 'mails' must be an array");
  await expect(utils.addJob(mails, [{ to: "a" }, { to: 5 } as never])).rejects.toThrow("'[1].to'");
  const { id } = await utils.addJob("mails", { to: "a" });
  await drain(mails);
  expect((await db.job(id))?.last_error).toContain("It must be an array with at least one item");
});

test("items of older versions are upgraded one by one, and queue and key may depend on the items", async () => {
  const { db, utils, drain } = await start();
  const seen: unknown[] = [];
  const mails = defineBatchTask({
    identifier: "mails",
    item: z.strictObject({ to: z.string() }),
    upgrade: [{ from: z.string(), to: (old) => ({ to: old }) }],
    queueName: ([first]) => first?.to,
    jobKey: (items) => `mails:${items.length}`,
    run: (items) => void seen.push(...items),
  });
  await utils.addJob("mails", ["old", { to: "new" }]);
  const keyed = await utils.addJob(mails, [{ to: "ada" }]);
  expect(keyed.key).toBe("mails:1");
  expect((await utils.getJob(keyed.id))?.queue_name).toBe("ada");
  await drain(mails);
  expect(seen).toEqual([{ to: "old" }, { to: "new" }, { to: "ada" }]);
  expect(await db.jobs()).toEqual([]);
});
