import { expect, onTestFinished, test } from "vitest";
import { startPrivateServer } from "../support/private-server.ts";
import { startProxy } from "../support/proxy.ts";
import { Arena, type ChaosWorker, nothing, recovery } from "./kit.ts";
import { type Entry, now } from "./ledger.ts";

const soakMs = Number(process.env.SOAK_MS ?? 60_000);
const seed = Number(process.env.SOAK_SEED ?? 1);

test(`a mixture of troubles for ${soakMs / 1000} s, seed ${seed}: nothing is lost, doubled, overtaken or stuck`, async () => {
  const server = await startPrivateServer();
  onTestFinished(() => server.remove());
  const arena = new Arena(server.url, seed);
  const proxy = await startProxy(server.url);
  // The first is left alone, so that its heap tells something.
  const witness = await arena.start();
  const workers = await Promise.all([1, 2].map(() => arena.start()));
  let behind = await arena.start({ connectionString: proxy.url });

  const replace = async (worker: ChaosWorker): Promise<void> => {
    await worker.kill();
    if (worker === behind) behind = await arena.start({ connectionString: proxy.url });
    else workers[workers.indexOf(worker)] = await arena.start();
  };
  const troubles: Record<string, () => Promise<void>> = {
    kill: () => replace(arena.pick([...workers, behind])),
    freeze: async () => {
      const thaw = arena.pick(workers).freeze();
      await arena.rest(recovery.sweepThreshold + 1_500);
      thaw();
    },
    "black hole": async () => {
      const end = arena.excuse(behind.pid);
      proxy.blackhole();
      await arena.rest(recovery.sweepThreshold + 1_500);
      proxy.restore();
      end();
    },
    reset: async () => proxy.cut(),
    latency: async () => {
      proxy.lag(50);
      await arena.rest(2_000);
      proxy.lag(0);
    },
    drip: async () => {
      proxy.drip(200);
      await arena.rest(2_000);
      proxy.drip(Infinity);
    },
    terminate: async () => {
      await arena.ask(`select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid()`);
    },
    restart: () => server.restart("fast"),
    crash: async () => {
      const end = arena.excuse(null);
      await server.restart("immediate");
      await arena.ask("select 1");
      end();
    },
    "odd errors": async () => {
      await arena.add(Array.from({ length: 14 }, (_, odd) => ({ odd })));
    },
  };
  const counts = Object.fromEntries(Object.keys(troubles).map((name) => [name, 0]));
  for (const end = now() + soakMs; now() < end; ) {
    const [row] = await arena.ask<{ jobs: number }>("select count(*)::int as jobs from graphile_worker._private_jobs");
    if (row!.jobs < 1_000) await arena.addMixture(300).catch(() => undefined);
    await arena.rest(500 + arena.any(1_500));
    const name = arena.pick(Object.keys(troubles));
    counts[name]!++;
    await troubles[name]!();
    await arena.ask("select 1");
  }
  const [rows] = await arena.ask<Record<string, unknown>>(`
    select n_dead_tup::int as "dead rows of jobs", pg_size_pretty(pg_total_relation_size(relid)) as "size of jobs"
    from pg_stat_user_tables where relname = '_private_jobs'`);
  const verdict = await arena.verdict(120_000);
  const entries = arena.entries();
  console.table({ ...counts });
  console.table({
    "jobs done": entries.filter(({ event }) => event === "done").length,
    ...healthOf(entries, witness.pid),
    ...rows,
    ...Object.fromEntries(Object.entries(verdict).map(([what, list]) => [what, list.length])),
  });
  expect(verdict).toEqual(nothing);
});

/** Of the worker that was left alone: the median heap of each quarter of the run, and the longest delays of its event loop. */
function healthOf(entries: readonly Entry[], pid: number): Record<string, string> {
  const beats = entries.filter((entry) => entry.event === "health" && entry.pid === pid);
  const median = (list: readonly Entry[]): number =>
    list.map(({ heap }) => heap).sort((a, b) => a - b)[list.length >> 1] ?? 0;
  const quarters = [0, 1, 2, 3].map((nth) => beats.slice((nth * beats.length) / 4, ((nth + 1) * beats.length) / 4));
  const delays = beats.map(({ delay }) => delay).sort((a, b) => a - b);
  return {
    "heap by quarters (MB)": quarters.map((list) => (median(list) / 1e6).toFixed(1)).join(", "),
    "memory at the end (MB)": ((beats.at(-1)?.rss ?? 0) / 1e6).toFixed(0),
    "event-loop delay, median and worst second (ms)": [delays[delays.length >> 1], delays.at(-1)]
      .map((delay) => delay?.toFixed(0))
      .join(", "),
  };
}
