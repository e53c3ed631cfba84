import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils, type PauseTarget, type QueueUtils } from "../../src/index.ts";
import { sleep } from "../../src/util/sleep.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { hasPgBouncer, noPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { allRuns, countRuns, findOverlaps } from "../support/runs.ts";
import { times } from "../support/times.ts";
import { until } from "../support/wait.ts";
import { type Run, startOriginal, startWorker, type WorkerProcess } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

/** Milliseconds by the monotonic clock, which is one for all processes of a machine. */
const clock = (): number => Number(process.hrtime.bigint()) / 1e6;

/** From the return of `pause` to the call of `resume`, or to its own end. */
interface PauseSpan {
  readonly target: PauseTarget;
  readonly from: number;
  to: number;
}

/** Runs that began while they were paused, more than a second after the pause. */
function findTrespassers(runs: readonly Run[], spans: readonly PauseSpan[], queueIds: Map<string, number>): unknown[] {
  return spans.flatMap((span) => {
    const { task, queue } = span.target;
    const isMeant = (run: Run): boolean =>
      span.target.all === true || run.task === task || (queue !== undefined && run.queueId === queueIds.get(queue));
    return runs
      .filter((run) => isMeant(run) && run.startedAt > span.from + 1_000 && run.startedAt < span.to)
      .map((run) => ({ ...span, run }));
  });
}

/** Numbers from 0 to 1 that depend on nothing but the seed. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

const queueNames = ["queue 0", "queue 1", "queue 2", "queue 3"];

/** Adds jobs outside of queues, and jobs in queues, each queue with one task, in an order that even its times show. */
async function feed(db: TestDatabase): Promise<string[]> {
  const rows = await db.query<{ id: string }>(`
    select (graphile_worker.add_job(
      case when n % 2 = 0 then 'work' else 'toil' end, '{"ms":4}',
      queue_name => case when n % 3 = 0 then 'queue ' || n % 4 end,
      run_at => clock_timestamp()
    )).id from generate_series(0, 59) as n`);
  return rows.map(({ id }) => id);
}

async function utilsFor(connectionString: string): Promise<QueueUtils> {
  const utils = await makeWorkerUtils({ connectionString, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  return utils;
}

test("tasks, queues and everything are paused and resumed at random while jobs flow through four processes and an original", async () => {
  const seed = Number(process.env.PAUSE_SEED ?? Date.now() % 1_000_000);
  const random = seeded(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!;
  const db = await freshDatabase();
  const utils = await utilsFor(db.url);
  const options = { connectionString: db.url, concurrency: 3 };
  const ours = await Promise.all([
    startWorker(options),
    startWorker(options),
    startWorker({ ...options, useNotifications: false, pollInterval: 300 }),
    startWorker({ ...options, concurrency: 1 }),
  ]);
  const original = await startOriginal({ ...options, concurrency: 1, pollInterval: 300 });
  const targets: PauseTarget[] = [
    { task: "work" },
    { task: "toil" },
    { all: true },
    ...queueNames.map((queue) => ({ queue })),
  ];

  const added: string[] = [];
  const spans: PauseSpan[] = [];
  const open = new Map<PauseTarget, PauseSpan>();
  const resume = async (target: PauseTarget): Promise<void> => {
    // A pause that was to end by itself may have been replaced by this one.
    for (const span of spans) if (span.target === target) span.to = Math.min(span.to, clock());
    open.delete(target);
    await utils.resume(target);
  };
  for (let step = 0; step < times(30) || spans.length <= 5; step++) {
    added.push(...(await feed(db)));
    const target = pick(targets);
    if (open.has(target)) {
      if (random() < 0.4) await resume(target);
    } else if (random() < 0.4) {
      const ends = random() < 0.3 ? new Date(Date.now() + 1_500) : undefined;
      await utils.pause(target, { until: ends });
      const from = clock();
      const span = { target, from, to: ends ? from + ends.getTime() - Date.now() : Number.POSITIVE_INFINITY };
      spans.push(span);
      if (!ends) open.set(target, span);
    }
    await sleep(150);
  }
  for (const target of targets) await resume(target);
  await until(async () => (await db.jobs()).length === 0, {
    what: `every job is done (seed ${seed})`,
    withinMs: 60_000,
  });

  const workers: WorkerProcess[] = [...ours, original];
  for (const worker of workers) expect(await worker.stop()).toBe(0);
  const rows = await db.query<{ id: number; queue_name: string }>(
    "select id, queue_name from graphile_worker._private_job_queues",
  );
  const queueIds = new Map(rows.map(({ id, queue_name }) => [queue_name, id]));
  const ofQueues = spans.filter(({ target }) => target.queue !== undefined);
  expect(findTrespassers(allRuns(ours), spans, queueIds), `seed ${seed}`).toEqual([]);
  expect(findTrespassers(original.runs(), ofQueues, queueIds), `seed ${seed}`).toEqual([]);

  const runs = allRuns(workers);
  const counts = countRuns(runs);
  expect(
    added.filter((id) => counts.get(id) !== 1),
    `seed ${seed}`,
  ).toEqual([]);
  expect(findOverlaps(runs), `seed ${seed}`).toEqual([]);
  for (const queueId of queueIds.values()) {
    const order = runs
      .filter((run) => run.queueId === queueId)
      .toSorted((a, b) => a.startedAt - b.startedAt)
      .map(({ id }) => Number(id));
    expect(order, `seed ${seed}`).toEqual(order.toSorted((a, b) => a - b));
  }
  expect(spans.length).toBeGreaterThan(5);
  expect(original.runs().length).toBeGreaterThan(0);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  expect(await db.query("select from graphile_worker._hathi_pauses")).toEqual([]);
});

test("behind PgBouncer a pause holds within a second, and its end is noticed", async ({ skip }) => {
  skip(!hasPgBouncer, noPgBouncer);
  const db = await freshDatabase();
  const url = await startPgBouncer(db.url);
  const utils = await utilsFor(url);
  const worker = await startWorker({ connectionString: url, concurrency: 2, pollInterval: 60_000 });
  await until(() => worker.logged(/Notifications do not arrive/).length > 0);
  const added = await feed(db);
  await utils.pause({ task: "toil" });
  const span: PauseSpan = { target: { task: "toil" }, from: clock(), to: Number.POSITIVE_INFINITY };
  // More than a second of jobs that are not paused.
  while (clock() < span.from + 2_000) {
    added.push(...(await feed(db)));
    await sleep(200);
  }
  await until(async () => (await db.jobs()).every((job) => job.task_identifier === "toil"));
  expect((await db.jobs()).length).toBeGreaterThan(0);
  span.to = clock();
  await utils.resume({ task: "toil" });
  await until(async () => (await db.jobs()).length === 0);
  expect(await worker.stop()).toBe(0);
  expect(findTrespassers(worker.runs(), [span], new Map())).toEqual([]);
  expect(added.filter((id) => countRuns(worker.runs()).get(id) !== 1)).toEqual([]);
});

test("a pause outlives the restart of every worker", async () => {
  const db = await freshDatabase();
  const utils = await utilsFor(db.url);
  const first = await startWorker({ connectionString: db.url });
  await utils.pause({ queue: "queue 0" });
  await utils.pause({ task: "toil" });
  expect(await first.stop()).toBe(0);
  await feed(db);
  const second = await startWorker({ connectionString: db.url });
  await until(async () =>
    (await db.jobs()).every((job) => job.task_identifier === "toil" || job.queue_name === "queue 0"),
  );
  await utils.resume({ queue: "queue 0" });
  await utils.resume({ task: "toil" });
  await until(async () => (await db.jobs()).length === 0);
  expect(await second.stop()).toBe(0);
});
