import { expect, test } from "vitest";
import { cleanup } from "../../src/admin/cleanup.ts";
import { examineHealth } from "../../src/admin/doctor.ts";
import { explainJob } from "../../src/admin/explain-job.ts";
import { makeAddJobs } from "../../src/client/add-jobs.ts";
import { clientDatabase, type Database, poolDatabase } from "../../src/db/database.ts";
import { KnownTasks } from "../../src/worker/claim/known-tasks.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";

const everything = { tasks: ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS"] } as const;

function open(db: TestDatabase): Database {
  return poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
}

function orphans(db: TestDatabase): Promise<unknown[]> {
  return db.query(`
    select job.id from graphile_worker._private_jobs as job
    where not exists (select from graphile_worker._private_tasks where id = job.task_id)
      or (job.job_queue_id is not null
        and not exists (select from graphile_worker._private_job_queues where id = job.job_queue_id))`);
}

const spec = "array[row('t', '{}', 'q', null, null, $1, null, null)::graphile_worker.job_spec]";
const adds: [how: string, sql: string | undefined, key: string | null][] = [
  ["add_job", "select graphile_worker.add_job('t', queue_name => 'q', job_key => $1)", null],
  ["add_job with a key", "select graphile_worker.add_job('t', queue_name => 'q', job_key => $1)", "k"],
  [
    "add_job with unsafe_dedupe",
    "select graphile_worker.add_job('t', queue_name => 'q', job_key => $1, job_key_mode => 'unsafe_dedupe')",
    "k",
  ],
  ["add_jobs", `select graphile_worker.add_jobs(${spec})`, null],
  ["add_jobs with a key", `select graphile_worker.add_jobs(${spec})`, "k"],
  ["the library's addJobs", undefined, null],
];

test.each(adds)(
  "a queue and a task that an open transaction has chosen survive a clean-up: %s",
  async (_, sql, key) => {
    const db = await freshDatabase();
    await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
    await db.query("delete from graphile_worker._private_jobs");
    const application = await db.pool.connect();
    await application.query("begin");
    if (sql) {
      await application.query(sql, [key]);
    } else {
      const tx = clientDatabase(application, { schema: db.schema, preparedStatements: true });
      await makeAddJobs(tx, { useNodeTime: false })([{ identifier: "t", payload: {}, queueName: "q" }]);
    }
    await cleanup(open(db), everything);
    await application.query("commit");
    application.release();
    expect(await orphans(db)).toEqual([]);
    const { completed, runner } = await startWorker(db, { t: () => undefined });
    await completed(1);
    await runner.stop();
  },
);

test("jobs that are added and done all the time beside clean-ups keep their queues and tasks", async () => {
  const db = await freshDatabase();
  // The clean-up must see what was committed between its statements, whatever the default of its connection.
  const pool = testPool(db.url, 2, { options: "-c default_transaction_isolation=repeatable\\ read" });
  const database = poolDatabase(pool, { schema: db.schema, preparedStatements: true });
  let isOver = false;
  const cleaning = (async () => {
    while (!isOver) await cleanup(database, everything);
  })();
  const adding = [1, 2, 3].map(async (n) => {
    for (let round = 0; round < 150; round++) {
      const client = await db.pool.connect();
      await client.query("begin");
      await client.query("select graphile_worker.add_job('task ' || $1, queue_name => 'queue ' || $1)", [
        (n + round) % 2,
      ]);
      await client.query("commit");
      client.release();
      if (round % 3 === 0) await db.query("delete from graphile_worker._private_jobs");
      expect(await orphans(db)).toEqual([]);
    }
  });
  await Promise.all(adding);
  isOver = true;
  await cleaning;
  expect(await orphans(db)).toEqual([]);
});

test("a queue goes on while an application that has added to it keeps its transaction open", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q') from generate_series(1, 3)");
  const application = await db.pool.connect();
  await application.query("begin");
  await application.query("select graphile_worker.add_job('t', queue_name => 'q')");
  const { completed, runner } = await startWorker(db, { t: () => undefined });
  await completed(3);
  await application.query("commit");
  application.release();
  await completed(4);
  await runner.stop();
});

test("tasks of workers that are alive are kept; those of silent ones are not", async () => {
  const db = await freshDatabase();
  await db.query(`
    insert into graphile_worker._private_tasks (identifier) values ('alive'), ('silent'), ('kept'), ('old');
    insert into graphile_worker._private_workers (id, last_heartbeat_at, metadata) values
      ('a', now(), '{"tasks": ["alive"]}'), ('b', now(), null), ('c', now() - interval '1 hour', '{"tasks": ["silent"]}')`);
  await cleanup(open(db), { tasks: ["GC_TASK_IDENTIFIERS"], taskIdentifiersToKeep: ["kept"] });
  const left = await db.query("select identifier from graphile_worker._private_tasks order by 1");
  expect(left.map(({ identifier }) => identifier)).toEqual(["alive", "kept"]);
});

test("a worker without heartbeats learns that the id of its task has changed", async () => {
  const db = await freshDatabase();
  const { completed, runner } = await startWorker(db, { t: () => undefined }, { pollInterval: 200 });
  await db.query("select graphile_worker.add_job('t')");
  await completed(1);
  await cleanup(open(db), everything);
  expect(await db.query("select from graphile_worker._private_tasks")).toEqual([]);
  await db.query("select graphile_worker.add_job('t')");
  await until(async () => (await db.jobs()).length === 0, { what: "the job is done", withinMs: 60_000 });
  await runner.stop();
});

test("the ids of tasks are asked for again when they are old, and not before", async () => {
  const db = await freshDatabase();
  const database = open(db);
  const tasks = { t: () => undefined };
  const [steady, fresh] = [new KnownTasks({ database, tasks }), new KnownTasks({ database, tasks, maxAgeMs: -1 })];
  const before = [(await steady.ids(false)).ids, (await fresh.ids(false)).ids];
  await cleanup(database, everything);
  await db.query("select graphile_worker.add_job('t')");
  expect((await steady.ids(false)).ids).toEqual(before[0]);
  const [task] = await db.query<{ id: number }>("select id from graphile_worker._private_tasks");
  expect((await fresh.ids(false)).ids).toEqual([task!.id]);
  expect(before[1]).not.toEqual([task!.id]);
});

test("jobs whose queue or task is gone are found by doctor and explained by why", async () => {
  const db = await freshDatabase();
  const database = open(db);
  await db.query(
    "select graphile_worker.add_job('lost', queue_name => 'lost'), graphile_worker.add_job('t', queue_name => 'lost')",
  );
  const checkUp = async (): Promise<unknown> =>
    (await examineHealth(database)).find(({ name }) => name === "references");
  expect(await checkUp()).toMatchObject({ status: "ok" });
  await db.query(`
    delete from graphile_worker._private_tasks where identifier = 'lost';
    delete from graphile_worker._private_job_queues`);
  expect(await checkUp()).toMatchObject({
    status: "problem",
    message: expect.stringContaining(
      "2 jobs cannot run: the rows of tasks with the ids 1 and queues with the ids 1 are gone",
    ),
  });
  expect(await explainJob(database, "1")).toMatchObject({
    task: null,
    queue: null,
    reasons: [
      { kind: "task-missing", taskId: 1, message: expect.stringContaining("The row of its task (id 1) is gone") },
      { kind: "queue-missing", queueId: 1, message: expect.stringContaining("The row of its queue (id 1) is gone") },
    ],
  });
  expect((await explainJob(database, "2")).reasons[0]).toMatchObject({ kind: "queue-missing" });
});
