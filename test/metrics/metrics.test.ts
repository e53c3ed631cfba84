import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { MeteredPool } from "../../src/hooks/meter.ts";
import { makeMetrics, metricsHandler, serveMetrics } from "../../src/metrics/index.ts";
import { makeWorkerUtils } from "../../src/runner/worker-utils.ts";
import { monotonicMs } from "../../src/util/timers.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { heldTask, startWorker } from "../worker/kit.ts";
import { parse, sample } from "./kit.ts";

test("attempts are counted by task and outcome, with the time from due to start and the time they ran", async () => {
  const db = await freshDatabase();
  const metrics = makeMetrics();
  const worker = await startWorker(
    db,
    {
      work: () => undefined,
      fail: () => {
        throw new Error("boom");
      },
    },
    { metrics, concurrency: 3 },
  );
  await db.query(`
    select graphile_worker.add_job('work') from generate_series(1, 3);
    select graphile_worker.add_job('fail', max_attempts => 1), graphile_worker.add_job('fail')`);
  await worker.completed(5);

  const text = await metrics.prometheus();
  const finished = parse(text).filter(({ name }) => name === "hathi_jobs_finished_total");
  expect(finished.map(({ labels, value }) => [labels.task, labels.outcome, value]).sort()).toEqual([
    ["fail", "failed", 1],
    ["fail", "permanentlyFailed", 1],
    ["work", "succeeded", 3],
  ]);
  expect(sample(text, "hathi_job_wait_seconds_count", { task: "work" })).toBe(3);
  expect(sample(text, "hathi_job_run_seconds_count", { task: "fail" })).toBe(2);
  expect(sample(text, "hathi_slots", { state: "free" })).toBe(3);
  expect(sample(text, "hathi_settle_batch_size_sum")).toBe(5);
  expect(sample(text, "hathi_claim_batch_size_sum")).toBe(5);
  expect(sample(text, "hathi_claim_seconds_count")).toBeGreaterThan(0);
  expect(sample(text, "hathi_pool_connections", { state: "waiting" })).toBe(0);
  expect(sample(text, "hathi_event_loop_delay_seconds", { percentile: "99" })).toBeGreaterThanOrEqual(0);
});

test("a job waits from when it was due, by the clock of the database", async () => {
  const db = await freshDatabase();
  await db.query(`
    select graphile_worker.add_job('late');
    select graphile_worker.add_job('overdue', run_at => now() - interval '1 hour');
    update graphile_worker._private_jobs set run_at = now() - interval '1 hour', created_at = now() - interval '2 hours'
    where id = (select min(id) from graphile_worker._private_jobs)`);
  const metrics = makeMetrics();
  const worker = await startWorker(db, { late: () => undefined, overdue: () => undefined }, { metrics });
  await worker.completed(2);
  const text = await metrics.prometheus();
  const late = sample(text, "hathi_job_wait_seconds_sum", { task: "late" })!;
  expect(late).toBeGreaterThan(3_599);
  expect(late).toBeLessThan(3_700);
  // One that was added for a time in the past waits since it was added.
  expect(sample(text, "hathi_job_wait_seconds_sum", { task: "overdue" })).toBeLessThan(100);
  const buckets = parse(text).filter(
    ({ name, labels }) => name === "hathi_job_wait_seconds_bucket" && labels.task === "late",
  );
  expect(buckets.find(({ labels }) => labels.le === "2.048")?.value).toBe(0);
  expect(buckets.find(({ labels }) => labels.le === "4194.304")?.value).toBe(1);
  expect(buckets.at(-1)).toMatchObject({ labels: { le: "+Inf" }, value: 1 });
});

test("jobs that are added, running, lost and recovered are counted", async () => {
  const db = await freshDatabase();
  const metrics = makeMetrics();
  const held = heldTask();
  const worker = await startWorker(db, { held: held.task }, { metrics, concurrency: 2 });
  await worker.runner.addJob("held", {});
  await worker.runner.addJobs([
    { identifier: "elsewhere", payload: {} },
    { identifier: "elsewhere", payload: {} },
  ]);
  const job = await held.begun(1);
  expect(sample(await metrics.prometheus(), "hathi_slots", { state: "busy" })).toBe(1);
  await db.query("delete from graphile_worker._private_jobs where id = $1", [job.id]);
  held.releaseAll();
  await worker.nth("job:lost");

  await db.query(`
    insert into graphile_worker._private_workers (id, last_heartbeat_at) values ('gone', now() - interval '1 day');
    select graphile_worker.add_job('stranded');
    update graphile_worker._private_jobs set locked_by = 'gone', locked_at = now() - interval '1 day', attempts = 1
    where task_id = (select id from graphile_worker._private_tasks where identifier = 'stranded')`);
  const utils = await makeWorkerUtils({ connectionString: db.url, metrics });
  onTestFinished(() => utils.release());
  await utils.sweepStaleWorkers();

  const text = await metrics.prometheus();
  expect(sample(text, "hathi_jobs_added_total", { task: "held" })).toBe(1);
  expect(sample(text, "hathi_jobs_added_total", { task: "elsewhere" })).toBe(2);
  expect(sample(text, "hathi_jobs_finished_total", { task: "held", outcome: "lost" })).toBe(1);
  expect(sample(text, "hathi_jobs_recovered_total")).toBe(1);
});

test("names of tasks are escaped, and beyond the first so many they share a label", async () => {
  const metrics = makeMetrics({ maxTasks: 2 });
  metrics.added('quo"te\\and\nline', 1);
  metrics.added("second", 2);
  metrics.added("third", 3);
  metrics.added("fourth", 4);
  metrics.added("second", 5);
  const added = parse(await metrics.prometheus()).filter(({ name }) => name === "hathi_jobs_added_total");
  expect(added.map(({ labels, value }) => [labels.task, value])).toEqual([
    ['quo"te\\and\nline', 1],
    ["second", 7],
    ["(other)", 7],
  ]);
});

test("a worker is ready while its last claim succeeded, and live whatever becomes of its claims", async () => {
  const db = await freshDatabase();
  const metrics = makeMetrics();
  expect(metrics.ready().ok).toBe(false);
  const worker = await startWorker(db, { work: () => undefined }, { metrics, pollInterval: 50 });
  await until(() => metrics.ready().ok);

  await db.query("alter function graphile_worker._hathi_claim_jobs rename to hidden");
  await until(() => !metrics.ready().ok);
  expect(metrics.live().ok).toBe(true);
  expect(sample(await metrics.prometheus(), "hathi_claim_errors_total")).toBeGreaterThan(0);

  await db.query("alter function graphile_worker.hidden rename to _hathi_claim_jobs");
  await until(() => metrics.ready().ok);
  await worker.runner.stop();
  expect(metrics.ready()).toEqual({ ok: false, message: "The worker is stopping." });
  expect(metrics.live().ok).toBe(true);
});

test("a worker whose loop stands still, or that cannot go on, is not live", () => {
  const pool = { pollInterval: 2_000, turnedAt: monotonicMs } as unknown as MeteredPool;
  const metrics = makeMetrics();
  metrics.attach(pool);
  expect(metrics.live().ok).toBe(true);
  metrics.attach({ ...pool, turnedAt: () => monotonicMs() - 63_000 });
  expect(metrics.live()).toEqual({ ok: false, message: "The worker has not looked for jobs for 63 s." });

  const dying = makeMetrics();
  const handlers = dying.attach(pool);
  handlers["pool:fatalError"]?.({ error: new Error("no way"), action: "completeJob", workerPool: null as never });
  expect(dying.live()).toEqual({ ok: false, message: "The worker cannot go on: no way" });
  expect(dying.ready().ok).toBe(false);
});

test("the handler answers below any path, for both kinds of servers", async () => {
  const metrics = makeMetrics();
  metrics.added("work", 1);
  const handler = metricsHandler(metrics);
  const server = createServer((request, response) => void handler.node(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/internal`;

  const ask = async (path: string, method = "GET"): Promise<[Response, Response]> => [
    await fetch(base + path, { method }),
    await handler.fetch(new Request(base + path, { method })),
  ];
  for (const response of await ask("/metrics?debug=1")) {
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(sample(await response.text(), "hathi_jobs_added_total", { task: "work" })).toBe(1);
  }
  for (const response of await ask("/livez")) expect(response.status).toBe(200);
  for (const response of await ask("/readyz")) {
    expect(response.status).toBe(503);
    expect(await response.text()).toBe("No worker has started yet.\n");
  }
  for (const response of await ask("/metrics", "POST")) expect(response.status).toBe(405);
  for (const response of await ask("/else")) expect(response.status).toBe(404);
  for (const response of await ask("/metrics", "HEAD")) expect(await response.text()).toBe("");
});

test("a server for metrics listens to this machine alone or where it is told, and says if its port is taken", async () => {
  const first = await serveMetrics(makeMetrics(), { port: 0 });
  onTestFinished(() => first.close());
  expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect((await fetch(`${first.url}/livez`)).status).toBe(200);
  // Not every system has a second address for itself.
  const host = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";
  const elsewhere = await serveMetrics(makeMetrics(), { port: 0, host });
  onTestFinished(() => elsewhere.close());
  expect(new URL(elsewhere.url).hostname).toBe(host);
  const port = Number(new URL(first.url).port);
  await expect(serveMetrics(makeMetrics(), { port })).rejects.toThrow(/Metrics cannot be served: .*EADDRINUSE/);
});
