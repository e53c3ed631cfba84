import { availableParallelism } from "node:os";
import { now, sleep } from "../measure/clock.mjs";
import { readServer } from "../measure/counters.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";

/** As it is built: the benchmark measures what is published. */
const built = new URL("../../dist/dashboard/server/index.js", import.meta.url).href;
const { createDashboard } = await import(built);

/** Dashboards that ask for each page once, so that none is shown from memory. */
const visitors = 5;
const viewers = 10;
const notMeasured = "it has no dashboard in the package, or none that was tried";

export const s18 = {
  name: "s18",
  title: "The dashboard's pages over very many jobs",
  about:
    "Each page is asked for by several fresh dashboards, over waiting jobs of 20 tasks (some in queues, some dead) and finished ones; then ten viewers follow the overview.",
  target: "p95 below 200 ms with 5,000,000 waiting and 50,000,000 finished jobs; ten viewers below 1 % of the server",
  metrics: [
    { key: "p50", title: "p50 ms", better: "lower" },
    { key: "p95", title: "p95 ms", better: "lower" },
    { key: "slowest", title: "slowest page's median ms", better: "lower" },
    { key: "viewersPercent", title: "% of the server for ten viewers", better: "lower" },
  ],
  lacks: { "graphile-worker": notMeasured, "pg-boss": notMeasured, bullmq: notMeasured },
  cases: ({ scale }) => [
    { title: "200,000 waiting, 1,000,000 finished", waiting: scale(200_000), finished: scale(1_000_000) },
    { title: "5,000,000 waiting, 50,000,000 finished", waiting: scale(5_000_000), finished: scale(50_000_000) },
  ],
  measure: (context, { waiting, finished }) =>
    withPlace(context, [], async (place) => {
      await fill(place, waiting, finished);
      const options = { connectionString: place.address.connectionString, auth: "host", statementTimeout: 30_000 };
      const took = await visit(options, waiting);
      for (const [page, times] of took)
        console.log(`    ${page.padEnd(28)} ${times.map((ms) => Math.round(ms)).join(" ")} ms`);
      const all = [...took.values()].flat();
      const medians = [...took.values()].map((times) => percentile(times, 0.5));
      const share = await follow(context, options);
      return {
        p50: percentile(all, 0.5),
        p95: percentile(all, 0.95),
        slowest: Math.max(...medians),
        viewersPercent: share,
      };
    }),
};

/** A tenth of the jobs is in queues, a hundredth is dead; of the finished ones a hundredth has failed. */
async function fill(place, waiting, finished) {
  await place.query(
    "insert into graphile_worker._private_tasks (identifier) select 'task_' || i from generate_series(1, 20) as i on conflict do nothing",
  );
  await place.query(
    "insert into graphile_worker._private_job_queues (queue_name) select 'queue_' || i from generate_series(1, 1000) as i on conflict do nothing",
  );
  await place.query(`
    insert into graphile_worker._private_jobs (task_id, job_queue_id, payload, run_at, attempts, last_error, key, created_at)
    select (select min(id) from graphile_worker._private_tasks where identifier = 'task_1') + i % 20,
      case when i % 10 = 0 then (select min(id) from graphile_worker._private_job_queues) + i % 1000 end, json_build_object('n', i, 'to', 'somebody@example.com'),
      now() + (i % 3 - 1) * interval '1 hour', case when i % 100 = 7 then 25 else 0 end, case when i % 100 = 7 then 'TypeError: boom' end,
      case when i % 1000 = 1 then 'key_' || i end, now() - interval '1 hour'
    from generate_series(1, ${waiting}) as i`);
  await place.query(`
    insert into graphile_worker._hathi_history_batches
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select current_date + 2, now() - i * interval '10 milliseconds', i, 'task_' || 1 + i % 20, 'pool-1', 10000000 + i * 100, 10000000 + i * 100 + 99,
      array(select generate_series(10000000 + i * 100, 10000000 + i * 100 + 99)), array_fill(1, array[100]), array_fill(2, array[100])
    from generate_series(1, ${Math.ceil(finished / 100)}) as i`);
  await place.query(`
    insert into graphile_worker._hathi_history_attempts
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, error, error_class, fingerprint)
    select current_date + 15, now() - i * interval '1 second', i, i, 'task_' || 1 + i % 20, 25, 25, 'permanentlyFailed', 1, 2, 'pool-1', now(), 'TypeError: boom', 'TypeError', 'print' || i % 40
    from generate_series(1, ${Math.ceil(finished / 100)}) as i`);
  await place.query(`
    insert into graphile_worker._hathi_error_groups
    select expires_on, fingerprint, entry % 8, min(task_identifier), min(error_class), count(*), min(settled_at), max(settled_at)
    from graphile_worker._hathi_history_attempts group by expires_on, fingerprint, entry % 8`);
  await place.query(`
    insert into graphile_worker._hathi_job_times (period, starts_at, task, waits, runs, succeeded, failed, permanently_failed)
    select 'minute', date_trunc('minute', now()) - m * interval '1 minute', 'task_' || t, array_fill(5, array[20]), array_fill(5, array[20]), 99, 1, 1
    from generate_series(0, 179) as m, generate_series(1, 20) as t`);
  await place.query("vacuum (analyze)");
}

function pagesOf(waiting) {
  return [
    "session",
    "overview?span=1h",
    "jobs",
    "jobs?state=dead",
    "jobs?state=running",
    "jobs?task=task_3&state=waiting",
    `jobs?after=${Math.round(waiting / 2)}`,
    "jobs?search=nothing-like-this",
    "jobs?key=key_1001",
    "count?state=dead",
    `job?id=${Math.round(waiting / 2)}`,
    "errors?span=1d",
    "error?fingerprint=print7",
    "tasks?span=1h",
    "task?name=task_3&span=1h",
    "queues",
    "cron",
    "workers",
    "limits",
    "history",
    "history?task=task_3&outcome=succeeded",
    "history?outcome=permanentlyFailed",
    "audit",
    "find?q=task_1",
  ];
}

async function visit(options, waiting) {
  const pages = pagesOf(waiting);
  const took = new Map(pages.map((page) => [page, []]));
  for (let visitor = 0; visitor < visitors; visitor++) {
    const dashboard = createDashboard(options);
    await dashboard.open();
    for (const page of pages) {
      const start = now();
      const response = await dashboard.fetch(new Request(`http://localhost/api/${page}`));
      const text = await response.text();
      if (!response.ok) throw new Error(`${page} → ${response.status} ${text}`);
      took.get(page).push(now() - start);
    }
    await dashboard.close();
  }
  return took;
}

/** The share of all cores that the server takes more while ten pages are open than while none is. */
async function follow({ server, options: { quick } }, options) {
  const ms = quick ? 5_000 : 20_000;
  const cpuMs = async () => {
    const before = await readServer(server);
    await sleep(ms);
    const after = await readServer(server);
    return after.pgCpuMs === undefined ? undefined : after.pgCpuMs - before.pgCpuMs;
  };
  const alone = await cpuMs();
  const dashboard = createDashboard(options);
  const streams = await Promise.all(
    Array.from({ length: viewers }, () =>
      dashboard.fetch(new Request("http://localhost/api/stream?topic=overview&span=1h")),
    ),
  );
  const reading = streams.map(async (stream) => {
    for await (const _chunk of stream.body);
  });
  await sleep(2_000);
  const followed = await cpuMs();
  await dashboard.close();
  await Promise.allSettled(reading);
  return alone === undefined ? undefined : (Math.max(0, followed - alone) / ms / availableParallelism()) * 100;
}
