import { expect, onTestFinished, test, vi } from "vitest";
import { RateLimitError } from "../../src/job-errors.ts";
import { utilsOf } from "../control/kit.ts";
import { blockEventLoop } from "../support/block.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";

vi.setConfig({ testTimeout: 60_000 });

/** The most starts in any window that begins with one. */
function most(starts: readonly number[], periodMs: number): number {
  const sorted = [...starts].sort((one, other) => one - other);
  return Math.max(
    0,
    ...sorted
      .map((at, n) => sorted.findIndex((o, m) => m > n && o >= at + periodMs) - n)
      .map((count, n) => (count < 0 ? sorted.length - n : count)),
  );
}

test("in every window of the period no more jobs start than limit plus burst, in two pools together", async () => {
  const db = await freshDatabase();
  const starts: number[] = [];
  const tasks = { call: () => void starts.push(performance.now()) };
  const options = { concurrency: 5, taskOptions: { call: { rateLimit: { limit: 20, period: "1s", burst: 3 } } } };
  const one = await startWorker(db, tasks, options);
  await startWorker(db, tasks, options);
  await one.runner.addJobs(Array.from({ length: 70 }, () => ({ identifier: "call", payload: {} })));
  await until(() => starts.length === 70, { withinMs: 40_000 });
  expect(most(starts, 1_000)).toBeLessThanOrEqual(23);
  expect(await db.jobs()).toEqual([]);
});

test("at least 95 of 100 tokens are used on a real clock while work waits, in two pools together", async () => {
  const db = await freshDatabase();
  const [perSecond, burst] = [100, 100];
  const starts: number[] = [];
  const tasks = { call: () => void starts.push(performance.now()) };
  // The burst makes up for a machine that is busy for a second.
  const options = { taskOptions: { call: { rateLimit: { limit: 60 * perSecond, period: "1m", burst } } } };
  await db.query("select graphile_worker.add_job('call') from generate_series(1, 5000)");
  await startWorker(db, tasks, options);
  await startWorker(db, tasks, options);
  // The burst is used up by then, and with it what it gave to starts that might have been late.
  const first = burst + 50;
  /** What was used since, of what the rate gave. */
  const share = (): number => (starts.length - first) / (((starts.at(-1)! - starts[first - 1]!) * perSecond) / 1_000);
  await until(() => starts.length > first + 2 * perSecond && share() >= 0.95, { withinMs: 40_000 });
});

test("a process that is too busy for the slack of a rate starts its jobs all the same, and keeps the rate", async () => {
  const db = await freshDatabase();
  const starts: number[] = [];
  const tasks = { call: () => void starts.push(performance.now()) };
  const rateLimit = { limit: 5, period: "250ms" };
  const worker = await startWorker(db, tasks, { taskOptions: { call: { rateLimit } } });
  const jobs = Array.from({ length: 12 }, () => ({ identifier: "call", payload: {} }));
  await worker.runner.addJobs(jobs);
  // The slack is 10 ms, and every turn of the loop takes more.
  const spin = (): void => {
    blockEventLoop(30);
    if (starts.length < jobs.length) spinning = setImmediate(spin);
  };
  let spinning = setImmediate(spin);
  onTestFinished(() => clearImmediate(spinning));
  await until(() => starts.length === jobs.length, { withinMs: 40_000 });
  expect(most(starts, 250)).toBeLessThanOrEqual(5);
});

test("jobs of a named queue run one after the other under a rate that would let several start", async () => {
  const db = await freshDatabase();
  const ran: number[] = [];
  let running = 0;
  let together = 0;
  const worker = await startWorker(
    db,
    {
      call: async ({ nth }: { nth: number }) => {
        together = Math.max(together, ++running);
        await new Promise((resolve) => setImmediate(resolve));
        running--;
        ran.push(nth);
      },
    },
    { concurrency: 5, taskOptions: { call: { rateLimit: { limit: 100_000, period: "1m", burst: 10_000 } } } },
  );
  const jobs = Array.from({ length: 150 }, (_, nth) => ({ identifier: "call", payload: { nth }, queueName: "q" }));
  await worker.runner.addJobs(jobs);
  await until(() => ran.length === 150, { withinMs: 40_000 });
  expect(together).toBe(1);
  expect(ran).toEqual(jobs.map(({ payload }) => payload.nth));
});

test("a job that another transaction held is taken when that ends, while another job of its task runs", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('call') from generate_series(1, 2)");
  const other = await db.pool.connect();
  try {
    await other.query("begin");
    await other.query("select from graphile_worker._private_jobs order by id desc limit 1 for update");
    const held = heldTask();
    const rateLimit = { limit: 60_000, period: "1m", burst: 10 };
    await startWorker(db, { call: held.task }, { concurrency: 3, taskOptions: { call: { rateLimit } } });
    await held.begun(1);
    await other.query("rollback");
    await held.begun(2);
    held.releaseAll();
  } finally {
    other.release();
  }
});

test("a job that met a 429 holds back its key and uses no attempt; other keys go on", async () => {
  const db = await freshDatabase();
  const ran: string[] = [];
  let attempts: number | undefined;
  const worker = await startWorker(
    db,
    {
      call: (payload: { key: string; nth: number }, { job }: { job: { attempts: number } }) => {
        ran.push(`${payload.key}${payload.nth}`);
        if (payload.key === "a" && payload.nth === 1 && ran.filter((name) => name === "a1").length === 1) {
          throw new RateLimitError({ retryAfter: 1_500 });
        }
        if (payload.key === "a" && payload.nth === 1) attempts = job.attempts;
      },
    },
    { concurrency: 1, taskOptions: { call: { rateLimit: { limit: 1_000, period: "1s", burst: 1_000, key: "key" } } } },
  );
  const utils = await utilsOf(db);
  await worker.runner.addJob("call", { key: "a", nth: 1 });
  await until(() => ran.length === 1);
  await until(async () => (await utils.listLimits())[0]?.holds.length === 1);
  await worker.runner.addJob("call", { key: "a", nth: 2 });
  await worker.runner.addJob("call", { key: "b", nth: 1 });
  await until(() => ran.includes("b1"));
  expect(ran).toEqual(["a1", "b1"]);
  const waiting = (await db.jobs()).find(({ payload }) => (payload as { nth: number }).nth === 2)!;
  const { reasons } = await utils.explainJob(waiting.id);
  expect(reasons[0]).toMatchObject({ kind: "limited", by: "hold", key: "a", reason: "Held back for 2 seconds" });
  await until(() => ran.length === 4);
  expect(attempts).toBe(1);
});

test.each([
  { held: "the limit that it names", limit: "stripe", options: { limits: ["stripe"] }, reason: { limit: "stripe" } },
  { held: "its task, which has no limit", options: {}, reason: { limit: "charge" } },
])("a job that met a 429 holds back $held, and nothing else", async ({ limit, options, reason }) => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const ran: string[] = [];
  const meet = (_payload: unknown, { job }: { job: { task_identifier: string } }): void => {
    ran.push(job.task_identifier);
    if (ran.length === 1) throw new RateLimitError({ retryAfter: "1h", ...(limit && { limit }) });
  };
  await startWorker(
    db,
    { charge: meet, refund: meet, free: meet },
    { limits: { stripe: { concurrency: 5 } }, taskOptions: { charge: options, refund: options } },
  );
  const first = await utils.addJob("charge", {});
  await until(async () => (await utils.listLimits()).some(({ holds }) => holds.length > 0));
  const isShared = limit !== undefined;
  const waiting = [await utils.addJob("charge", {}), ...(isShared ? [await utils.addJob("refund", {})] : [])];
  await utils.addJob("free", {});
  if (!isShared) await utils.addJob("refund", {});
  await until(async () => (await db.jobs()).length === waiting.length + 1);
  expect(ran.toSorted()).toEqual(isShared ? ["charge", "free"] : ["charge", "free", "refund"]);
  for (const { id } of waiting) {
    expect((await utils.explainJob(id)).reasons[0]).toMatchObject({ kind: "limited", by: "hold", ...reason });
  }
  expect(await db.job(first.id)).toMatchObject({ attempts: 0, locked_at: null });
});

test("a job that met a 429 holds back those of its task that are claimed and not started", async () => {
  const db = await freshDatabase();
  let ran = 0;
  let ranBefore: number | undefined;
  await db.query(
    "select graphile_worker.add_job('call', json_build_object('nth', n)) from generate_series(1, 20000) as n",
  );
  const worker = await startWorker(
    db,
    {
      call: ({ nth }: { nth: number }) => {
        ran++;
        if (nth === 500) throw new RateLimitError({ retryAfter: "1h" });
      },
    },
    { concurrency: 2, taskOptions: { call: { rateLimit: { limit: 1_000_000, period: "10s", burst: 100_000 } } } },
  );
  worker.events.on("job:snoozed", () => {
    ranBefore = ran;
  });
  await until(() => ranBefore !== undefined, { withinMs: 40_000 });
  await until(
    async () => (await db.query("select from graphile_worker._private_jobs where locked_at is not null")).length === 0,
  );
  expect(ran).toBe(ranBefore);
  expect(ran).toBeLessThan(20_000);
});

test.each([{}, { key: "k" }])(
  "a rate that is raised acts at once, although its tokens were spent for an hour (%j)",
  async (keyed) => {
    const db = await freshDatabase();
    const utils = await utilsOf(db);
    const worker = await startWorker(
      db,
      { call: () => undefined },
      { taskOptions: { call: { rateLimit: { limit: 1, period: "1h", ...keyed } } } },
    );
    for (let n = 0; n < 3; n++) await worker.runner.addJob("call", { k: "a" });
    await until(async () => (await db.query("select from graphile_worker._hathi_limit_rates")).length === 1);
    await utils.setLimit("call", { limit: 100, period: "1s", ...("key" in keyed && { key: "a" }) });
    await worker.completed(3);
  },
);
