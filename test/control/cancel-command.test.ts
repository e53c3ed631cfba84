import { expect, test, vi } from "vitest";
import { runCommand } from "../support/command.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import type { ProgramEnd } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { startWorker } from "../worker/kit.ts";
import { cancellationOf, obedientTask, utilsOf } from "./kit.ts";

vi.setConfig({ testTimeout: 120_000 });

async function programFor(db: TestDatabase): Promise<(...args: string[]) => Promise<ProgramEnd>> {
  const { folder } = await makeProject({});
  return (...args) => runCommand(["cancel", ...args], { cwd: folder, env: { DATABASE_URL: db.url } });
}

test("hathi cancel takes ids: waiting jobs are gone with their reason, and unknown ids are counted out", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const cancel = await programFor(db);
  const ids = (await utils.addJobs([1, 2, 3].map(() => ({ identifier: "t", payload: {} })))).map(({ id }) => id);
  const end = await cancel(ids[0]!, ids[1]!, "999999", "--reason", "customer left");
  expect(end).toMatchObject({
    code: 0,
    stdout: "2 jobs cancelled.\n",
    stderr: expect.stringContaining("1 job left alone: permanently failed, or not there any more."),
  });
  expect((await db.jobs()).map(({ id }) => String(id))).toEqual([ids[2]]);
  expect(await cancellationOf(db, ids[1]!)).toMatchObject({ reason: "customer left", outcome: "cancelled" });
  const unknown = await cancel("999999", "--json");
  expect(unknown.code).toBe(1);
  expect(JSON.parse(unknown.stdout)).toEqual({ changed: [], stopping: [] });
});

test("hathi cancel stops a running job and says so, also as JSON", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const cancel = await programFor(db);
  const obedient = obedientTask();
  const worker = await startWorker(db, { t: obedient.task }, { concurrency: 2 });
  const ids = (await utils.addJobs([1, 2].map(() => ({ identifier: "t", payload: {} })))).map(({ id }) => id);
  await obedient.begun(2);
  const first = await cancel(ids[0]!, "--reason", "enough");
  expect(first).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("1 of them were running and are stopping"),
  });
  await worker.completed(1);
  const told = obedient.started.find(({ job }) => job.id === ids[0])!.abortSignal.reason as Error;
  expect(told).toMatchObject({ name: "JobCancelledError", cancelReason: "enough" });
  const second = await cancel(ids[1]!, "--json");
  expect(JSON.parse(second.stdout)).toMatchObject({ changed: [ids[1]], stopping: [ids[1]] });
  await worker.completed(2);
  expect(await db.jobs()).toEqual([]);
});

test("hathi cancel takes a filter, and asks first unless --yes is given", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const cancel = await programFor(db);
  await utils.addJobs([
    { identifier: "mail", payload: {}, queueName: "a" },
    { identifier: "mail", payload: {}, queueName: "b" },
    { identifier: "other", payload: {}, queueName: "a" },
  ]);
  expect(await cancel("--task", "mail", "--queue", "a")).toMatchObject({ code: 1 });
  expect(await db.jobs()).toHaveLength(3);
  const end = await cancel("--task", "mail", "--queue", "a", "--yes", "--json");
  expect(end.code).toBe(0);
  expect(JSON.parse(end.stdout).changed).toHaveLength(1);
  expect(await db.jobs()).toHaveLength(2);
  expect(await cancel()).toMatchObject({ code: 1, stderr: expect.stringContaining("Say which jobs") });
  expect(await cancel("1", "--task", "mail")).toMatchObject({ code: 1, stderr: expect.stringContaining("not both") });
});
