import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import {
  defineTask,
  type JobHelpers,
  type LinkedJob,
  makeWorkerUtils,
  type QueueUtils,
  runTaskListOnce,
} from "../../src/index.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

async function open(): Promise<{ db: TestDatabase; utils: QueueUtils }> {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return { db, utils };
}

const inAnHour = (): Date => new Date(Date.now() + 3_600_000);
const linkRows = (db: TestDatabase): Promise<unknown[]> => db.query("select from graphile_worker._hathi_job_links");
const pick = ({ task_identifier, state, outcome }: LinkedJob): unknown[] => [task_identifier, state, outcome];

test("a job knows what added it and what it has added, and what became of them", async () => {
  const { db, utils } = await open();
  const held = heldTask();
  const greet = defineTask({ identifier: "greet", run: () => undefined });
  const { runner } = await startWorker(
    db,
    {
      held: held.task,
      greet,
      broken: () => Promise.reject(new Error("no")),
      parent: async (_payload, helpers) => {
        await helpers.addJob("held", {});
        await helpers.addJobs([
          { identifier: "later", payload: {}, runAt: inAnHour() },
          { identifier: "broken", payload: {}, maxAttempts: 1 },
        ]);
        await greet.add(helpers, undefined);
        // Nothing is added by an add that a guard leaves out.
        await helpers.addJob("once", {}, { singleton: { key: "s" }, runAt: inAnHour() });
        await helpers.addJob("once", {}, { singleton: { key: "s" }, runAt: inAnHour() });
      },
    },
    { history: "outcomes", concurrency: 3 },
  );
  const { id } = await runner.addJob("parent", {});
  await held.begun(1);
  await until(async () => (await utils.listHistory()).entries.length === 3, { what: "three jobs have ended" });
  const links = await until(async () => {
    const found = await utils.getJobLinks(id);
    return found.added.length === 5 && found;
  });
  expect(links.added.map(pick)).toEqual([
    ["held", "running", null],
    ["later", "scheduled", null],
    ["broken", "dead", null],
    ["greet", "finished", "succeeded"],
    ["once", "scheduled", null],
  ]);
  expect(links).toMatchObject({ added_by: [], has_more: false });
  for (const child of links.added) {
    const { added, added_by } = await utils.getJobLinks(child.id);
    expect(added).toEqual([]);
    expect(added_by).toEqual([{ id, task_identifier: "parent", state: "finished", outcome: "succeeded" }]);
  }
  expect(await utils.getJobLinks(99_999)).toEqual({ added: [], added_by: [], has_more: false });
});

test("what a transaction adds has its parent once that is committed, and nothing is left of one that is rolled back", async () => {
  const { db, utils } = await open();
  const adding = async ({ keep }: { keep: boolean }, { withPgClient, withTransaction }: JobHelpers): Promise<void> => {
    await withPgClient(async (client) => {
      await client.query("begin");
      await withTransaction!(client).addJob("later", { keep }, { runAt: inAnHour() });
      await client.query(keep ? "commit" : "rollback");
    });
  };
  const { runner, completed } = await startWorker(
    db,
    {
      adding: adding as never,
      whole: async (payload, { addJobs }) => {
        await addJobs([{ identifier: "later", payload: {}, runAt: inAnHour() }]);
        if (!(payload as { keep: boolean }).keep) throw new Error("no");
      },
    },
    { history: "outcomes", taskOptions: { whole: { transactional: true } } },
  );
  const parents = [];
  for (const identifier of ["adding", "whole"])
    for (const keep of [true, false]) parents.push((await runner.addJob(identifier, { keep }, { maxAttempts: 1 })).id);
  await completed(4);
  const added = await Promise.all(parents.map(async (id) => (await utils.getJobLinks(id)).added.length));
  expect(added).toEqual([1, 0, 1, 0]);
  expect(await linkRows(db)).toHaveLength(2);
});

test("without history nothing is kept of it, and with history jobs that add none cause no statement", async () => {
  const db = await freshDatabase();
  const asked: string[] = [];
  const pool = testPool(db.url);
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((config: unknown, ...rest: unknown[]) => {
      asked.push(typeof config === "string" ? config : String((config as { text?: unknown }).text));
      return query(config, ...rest);
    }) as typeof client.query;
  });
  const { runner, completed } = await startWorker(
    db,
    { plain: () => undefined, silent: (_payload, { addJob }) => void addJob("plain", {}) },
    { pgPool: pool, history: "outcomes", taskOptions: { silent: { history: "off" } } },
  );
  await runner.addJobs([
    ...Array.from({ length: 50 }, () => ({ identifier: "plain", payload: {} })),
    { identifier: "silent", payload: {} },
  ]);
  await completed(52);
  await runner.stop();
  expect(asked.some((text) => text.includes("_hathi_complete_jobs_kept"))).toBe(true);
  expect(asked.filter((text) => text.includes("link"))).toEqual([]);
});

test("a worker that stops has written everything; also one that runs once on a single client", async () => {
  const { db, utils } = await open();
  const parent = async (_payload: unknown, { addJob }: JobHelpers): Promise<void> =>
    void (await addJob("later", {}, { runAt: inAnHour() }));
  const { runner, completed } = await startWorker(db, { parent }, { history: "outcomes" });
  const first = await runner.addJob("parent", {});
  await completed(1);
  await runner.stop();
  expect((await utils.getJobLinks(first.id)).added).toHaveLength(1);

  const second = await utils.addJob("parent", {});
  const client = await db.pool.connect();
  try {
    await runTaskListOnce({ history: "outcomes", logger: rememberingLogger().logger }, { parent }, client);
  } finally {
    client.release();
  }
  expect((await utils.getJobLinks(second.id)).added).toHaveLength(1);
});

test("a job that adds ten thousand others costs a few rows, and the first of them are told", async () => {
  const { db, utils } = await open();
  const { runner, completed } = await startWorker(
    db,
    {
      parent: async (_payload, { addJobs }) => {
        await addJobs(Array.from({ length: 10_000 }, () => ({ identifier: "later", payload: {}, runAt: inAnHour() })));
      },
    },
    { history: "outcomes" },
  );
  const { id } = await runner.addJob("parent", {});
  await completed(1);
  await runner.stop();
  expect((await linkRows(db)).length).toBeLessThan(5);
  const { added, has_more } = await utils.getJobLinks(id, { limit: 3 });
  expect(added.map((job) => Number(job.id) - Number(id))).toEqual([1, 2, 3]);
  expect(has_more).toBe(true);
  expect((await utils.getJobLinks(Number(id) + 10_000)).added_by).toMatchObject([{ id }]);
  await expect(utils.getJobLinks(id, { limit: 0 })).rejects.toThrow("'limit'");
});

test("links go with the successes of the task that added the jobs", async () => {
  const { db, utils } = await open();
  await db.query("select graphile_worker._hathi_link_jobs('{1,2}', '{3,4}', '{1,14}')");
  const tend = async (inDays: number): Promise<void> => {
    const step = async (): Promise<boolean> => {
      const [row] = await db.query<{ more: boolean }>(
        "select graphile_worker._hathi_tend_history_on('{1,14}', (now() at time zone 'utc')::date + $1::integer) as more",
        [inDays],
      );
      return row!.more;
    };
    while (await step());
  };
  const parts = (): Promise<unknown[]> =>
    db.query("select from pg_class where relname ~ '^_hathi_job_links_[0-9]{8}$'");
  await tend(1);
  expect((await utils.getJobLinks(3)).added_by).toHaveLength(1);
  expect(await parts()).not.toHaveLength(0);
  await tend(2);
  expect((await utils.getJobLinks(3)).added_by).toEqual([]);
  expect((await utils.getJobLinks(4)).added_by).toMatchObject([{ id: "2", state: null, task_identifier: null }]);
  await tend(60);
  expect(await linkRows(db)).toEqual([]);
});

test("a task's transaction under a role without a right to it goes on", async () => {
  const { db } = await open();
  const role = `linker_${randomBytes(5).toString("hex")}`;
  await db.query(`create role ${role}; grant usage on schema graphile_worker to ${role}`);
  onTestFinished(async () => {
    const client = new pg.Client({ connectionString: db.url });
    await client.connect();
    await client.query(`drop owned by ${role}; drop role ${role}`);
    await client.end();
  });
  const client = await db.pool.connect();
  try {
    await client.query(`begin; set local role ${role}`);
    await client.query("select graphile_worker._hathi_link_jobs('{1}', '{2}', '{1}')");
    await client.query("commit");
  } finally {
    client.release();
  }
  expect(await linkRows(db)).toEqual([]);
});
