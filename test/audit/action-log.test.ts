import { expect, test } from "vitest";
import { makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

const utilsOn = (db: TestDatabase): Promise<QueueUtils> =>
  makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });

test("an action is written down before it begins, then how far it is, and how it ended, once", async () => {
  const utils = await utilsOn(await freshDatabase());
  const begun = await utils.beginAction({ by: "ann", action: "retry", target: { ids: ["1", "2"] } });
  expect(begun).toMatchObject({
    done_by: "ann",
    action: "retry",
    target: { ids: ["1", "2"] },
    state: "running",
    changed: 0,
  });

  expect(await utils.reportAction(begun.id, { matched: 2, changed: 1 })).toMatchObject({
    state: "running",
    matched: 2,
    changed: 1,
  });
  const ended = await utils.reportAction(begun.id, {
    matched: 2,
    changed: 2,
    outcome: "done",
    message: "Retried 2 jobs.",
  });
  expect(ended).toMatchObject({ state: "done", changed: 2, message: "Retried 2 jobs.", finished_at: expect.any(Date) });
  // What has ended stays as it is.
  expect(await utils.reportAction(begun.id, { changed: 9, outcome: "failed" })).toBeNull();
  expect(await utils.stopAction(begun.id, "bob")).toBeNull();
  expect(await utils.getAction(begun.id)).toEqual(ended);
  expect(await utils.getAction("999")).toBeNull();
});

test("whoever reports learns from another process that it should stop, and from whom", async () => {
  const db = await freshDatabase();
  const [here, there] = [await utilsOn(db), await utilsOn(db)];
  const { id } = await here.beginAction({ by: "ann", action: "cancel", target: {} });
  expect((await here.reportAction(id, { changed: 1 }))?.stop_asked_by).toBeNull();
  await there.stopAction(id, "bob");
  await there.stopAction(id, "carl");
  expect((await here.reportAction(id, { changed: 2 }))?.stop_asked_by).toBe("bob");
});

test("an action whose process is silent for a minute counts as interrupted", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const { id } = await utils.beginAction({ action: "retry", target: {} });
  await db.query("update graphile_worker._hathi_audit set reported_at = now() - interval '61 seconds'");
  expect(await utils.getAction(id)).toMatchObject({ state: "interrupted", done_by: null });
});

test("actions are listed newest first in pages, by person and by action, and old ones can be deleted", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  for (const [by, action] of [
    ["ann", "retry"],
    ["bob", "retry"],
    ["ann", "pause"],
    ["ann", "retry"],
  ] as const) {
    await utils.beginAction({ by, action, target: {} });
  }
  const first = await utils.listActions({}, { limit: 3 });
  expect(first.actions.map(({ id }) => id)).toEqual(["4", "3", "2"]);
  const second = await utils.listActions({}, { limit: 3, after: first.next });
  expect(second).toMatchObject({ actions: [{ id: "1" }], next: null });
  expect((await utils.listActions({ by: "ann", action: "retry" })).actions.map(({ id }) => id)).toEqual(["4", "1"]);

  await db.query("update graphile_worker._hathi_audit set started_at = now() - interval '1 day' where id <= 2");
  expect(await utils.deleteActions(new Date(Date.now() - 3_600_000))).toBe(2);
  expect((await utils.listActions()).actions.map(({ id }) => id)).toEqual(["4", "3"]);
});

test("what PostgreSQL cannot keep does not keep an action from being written down", async () => {
  const utils = await utilsOn(await freshDatabase());
  const odd = "a\0b \ud800 \\u0000 ü";
  const { target } = await utils.beginAction({ action: "cancel", target: { reason: odd, list: [odd] } });
  const kept = "a\ufffdb \ufffd \\u0000 ü";
  expect(target).toEqual({ reason: kept, list: [kept] });
  await expect(utils.beginAction({ action: "", target: {} })).rejects.toThrow(
    "'action' must be a name such as 'retry', got ''.",
  );
});
