import { expect, test } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, never, startPool, startWorker } from "./kit.ts";

/** Notes who is inside each queue; two at the same time are a broken promise. */
function turnstile() {
  const inside = new Map<number, number>();
  const order: { queue: number; n: number }[] = [];
  let worst = 0;
  const task = async (payload: { n: number; ms?: number }, { job }: { job: { job_queue_id: number | null } }) => {
    const queue = job.job_queue_id!;
    const count = (inside.get(queue) ?? 0) + 1;
    inside.set(queue, count);
    worst = Math.max(worst, count);
    order.push({ queue, n: payload.n });
    await new Promise((resolve) => setTimeout(resolve, payload.ms ?? 0));
    inside.set(queue, inside.get(queue)! - 1);
  };
  return { task, order, worst: () => worst };
}

const addRun = (queues: number, jobs: number): string => `
  select graphile_worker.add_job('t', json_build_object('n', n), queue_name => 'q' || n % ${queues})
  from generate_series(1, ${jobs}) as n`;

const modes = [
  ["with default options", {}],
  ["with slots to spare", { concurrency: 10 }],
  ["with a local queue", { concurrency: 4, preset: { worker: { localQueue: { size: 100 } } } }],
  ["with a small local queue", { concurrency: 4, preset: { worker: { localQueue: { size: 3 } } } }],
  ["with batched endings", { concurrency: 4, preset: { worker: { completeJobBatchDelay: 5, failJobBatchDelay: 5 } } }],
  ["without notifications", { concurrency: 4, useNotifications: false }],
] as const;

test.each(modes)("the jobs of a queue run one after the other, in order, at once: %s", async (_name, options) => {
  const db = await freshDatabase();
  const { task, order, worst } = turnstile();
  await db.query(addRun(3, 120));
  const { completed } = await startWorker(db, { t: task }, options);
  await completed(120);
  expect(worst()).toBe(1);
  for (const queue of new Set(order.map(({ queue }) => queue))) {
    const numbers = order.filter((entry) => entry.queue === queue).map(({ n }) => n);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  }
});

test("several pools work on the same queues and never two of them on one at the same time", async () => {
  const db = await freshDatabase();
  const { task, order, worst } = turnstile();
  const pools = [
    startPool(db, { t: task }, { concurrency: 3 }),
    startPool(db, { t: task }, { concurrency: 3 }),
    startPool(db, { t: task }, { concurrency: 3, preset: { worker: { localQueue: { size: 20 } } } }),
  ];
  await db.query(addRun(4, 400));
  await until(async () => (await db.jobs()).length === 0, { what: "all jobs are done" });
  await Promise.all(pools.map(({ pool }) => pool.gracefulShutdown()));
  expect(order).toHaveLength(400);
  expect(worst()).toBe(1);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_by is not null")).toEqual([]);
});

test("the next job of a queue starts when the one before it has failed", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const { runner } = await startWorker(db, { t: held.task }, { concurrency: 2 });
  const first = await runner.addJob("t", {}, { queueName: "q" });
  await held.begun(1);
  await runner.addJob("t", {}, { queueName: "q" });
  held.release(0, new Error("no"));
  await held.begun(2);
  expect(await db.job(first.id)).toMatchObject({ last_error: "no", locked_by: null });
});

test("a queue that the pool lets go while all its slots are busy is taken up by another pool at once", async () => {
  const db = await freshDatabase();
  const mine = heldTask();
  const theirs = heldTask();
  const one = startPool(db, { t: mine.task, only: mine.task });
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  await mine.begun(1);
  await db.query("select graphile_worker.add_job('only', priority => -1)");
  const other = startPool(db, { t: theirs.task });
  await other.nth("worker:getJob:empty");
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  await other.nth("worker:getJob:empty", 2);
  mine.release(0);
  await theirs.begun(1);
  await mine.begun(2);
  expect(one.of("job:start")).toHaveLength(2);
});

test("runOnce works through a queue without waiting", async () => {
  const db = await freshDatabase();
  const { task, order, worst } = turnstile();
  await db.query(addRun(2, 60));
  await runOnce({
    connectionString: db.url,
    noHandleSignals: true,
    concurrency: 5,
    pollInterval: never,
    taskList: { t: task },
  });
  expect(order).toHaveLength(60);
  expect(worst()).toBe(1);
});

test("a queue whose rows another transaction is looking at is tried again soon, not at the next poll", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q')");
  const client = await db.pool.connect();
  await client.query("begin");
  await client.query("select from graphile_worker._private_job_queues for update");
  const { completed, nth } = await startWorker(db, { t: () => undefined });
  await nth("worker:getJob:empty", 2);
  await client.query("rollback");
  client.release();
  await completed(1);
});
