import { now, sleep } from "../measure/clock.mjs";
import { drain } from "../measure/drain.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";
import { withProcesses } from "../worker-process.mjs";

/** What a worker is started with, by family; a family that is not named has no such limit. */
const none = { ours: {}, "pg-boss": {}, bullmq: {} };
const limited = (options) => ({ taskOptions: { job: options } });
const perKey = {
  ours: limited({ concurrency: { limit: 2, key: "k" } }),
  "pg-boss": { groupConcurrency: 2 },
};

export const s14 = {
  name: "s14",
  title: "Concurrency limits, rate limits and turns",
  about:
    "Trivial jobs of one task in two processes: without a limit, under one that does not bind, under one that does, and with a limit of 2 for each " +
    "key, also while a transaction is held open; and without a limit beside a million jobs of another task that is held up by its own. Then one key with a long backlog and a limit of 5, and how soon the job of another key starts, with and without such a transaction. " +
    "pg-boss has limits per group only, which may be exceeded; BullMQ has a rate limit for the whole queue only.",
  target:
    "a limit that does not bind keeps at least 80 % of the rate; a blocked million costs another task at most a quarter; a newcomer's job starts within 1 s (p95), however long the backlog of another key",
  metrics: [
    { key: "rate", title: "jobs/s", better: "higher" },
    { key: "pickup", title: "newcomer p50 ms", better: "lower" },
    { key: "pickupP95", title: "newcomer p95 ms", better: "lower" },
  ],
  lacks: { "graphile-worker": "it has no limits" },
  cases: ({ scale }) => [
    { title: "no limit", plan: { count: scale(50_000) }, given: none },
    {
      title: "a limit that does not bind",
      plan: { count: scale(50_000) },
      given: {
        ours: limited({ concurrency: 10_000 }),
        "pg-boss": undefined,
        bullmq: { limiter: { max: 1_000_000, duration: 1_000 } },
      },
    },
    {
      title: "a rate that does not bind",
      plan: { count: scale(50_000) },
      given: {
        ours: limited({ rateLimit: { limit: 1_000_000, period: "1s", burst: 100_000 } }),
        bullmq: { limiter: { max: 1_000_000, duration: 1_000 } },
      },
    },
    { title: "4 at once", plan: { count: scale(5_000) }, given: { ours: limited({ concurrency: 4 }) } },
    {
      title: "1,000 per second",
      plan: { count: scale(5_000) },
      given: {
        ours: limited({ rateLimit: { limit: 1_000, period: "1s", burst: 50 } }),
        bullmq: { limiter: { max: 1_000, duration: 1_000 } },
      },
    },
    ...[10, 1_000, 10_000].map((keys) => ({
      title: `2 at once for each of ${keys.toLocaleString("en")} keys`,
      plan: { count: scale(20_000), keys },
      given: perKey,
    })),
    {
      title: "turns of 1,000 keys",
      plan: { count: scale(20_000), keys: 1_000 },
      given: { ours: limited({ fair: "k" }) },
    },
    {
      title: "2 at once for each of 1,000 keys, transaction held",
      plan: { count: scale(20_000), keys: 1_000 },
      given: perKey,
      isPinned: true,
    },
    {
      title: "no limit, beside 1,000,000 jobs of a task whose limit is used up",
      plan: { count: scale(50_000) },
      given: { ours: { taskOptions: { other: { rateLimit: { limit: 1, period: "1h" } } } } },
      blocked: scale(1_000_000),
    },
    ...[false, true].map((isPinned) => ({
      title: `newcomers beside a key with 1,000,000 jobs${isPinned ? ", transaction held" : ""}`,
      plan: { count: scale(1_000_000), keys: 1 },
      given: {
        ours: limited({ concurrency: { limit: 5, key: "k" } }),
        "pg-boss": { groupConcurrency: 5 },
      },
      isPinned,
      newcomers: scale(100),
    })),
  ],
  measure(context, { plan, given, isPinned, newcomers, blocked = 0 }) {
    const limits = given[context.system.family];
    if (!limits) throw new Error("It has no such limit.");
    const system = {
      ...context.system,
      fill: (place, what) => context.system.fill(place, what),
      settings: (options) => ({ ...context.system.settings(options), ...limits }),
    };
    const measured = { ...context, system };
    const others = blocked > 0 ? [{ count: blocked, task: "other" }] : [];
    const tasks = ["job", ...others.map(({ task }) => task)];
    return withPlace(measured, [...others, plan], async (place) => {
      await declareLimits(measured, place, limits, tasks);
      const holder = isPinned ? await place.connect() : undefined;
      await holder?.query("begin isolation level repeatable read; select pg_current_xact_id()");
      try {
        if (newcomers) return await measureNewcomers(measured, place, newcomers);
        return await drain(measured, place, { jobs: plan.count, processes: 2, tasks, filler: blocked });
      } finally {
        await holder?.query("rollback");
        holder?.release();
      }
    });
  },
};

/** How soon jobs of another key start while one key has a long backlog. */
function measureNewcomers({ system, options }, place, count) {
  return withProcesses([system.worker, system.worker], async ([worker, producer]) => {
    const settings = system.settings(options);
    await worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "stamp" });
    await untilIndexed(place, system.family);
    await producer.call("produce", { place: place.address, mode: "spaced", count, restMs: 30 });
    const until = now() + 20_000;
    for (;;) {
      const latencies = (await worker.call("record")).latencies.filter(Number.isFinite);
      if (latencies.length >= count || now() > until) {
        await worker.call("stop");
        if (latencies.length === 0) throw new Error("No job of a newcomer started within 20 s.");
        return {
          pickup: percentile(latencies, 0.5),
          pickupP95: percentile(latencies, 0.95),
          started: latencies.length,
        };
      }
      await sleep(50);
    }
  });
}

/**
 * Declares the limits before the clock runs, as they would be in a system that is in use, and lets their indexes be built. (A task that has just become
 * limited rests for a quarter of a second, and a build waits for every older snapshot.) The worker that does it runs no jobs: it accepts only flags
 * that none has.
 */
function declareLimits({ system, options }, place, limits, tasks) {
  if (system.family !== "ours" || Object.keys(limits).length === 0) return;
  return withProcesses([system.worker], async ([worker]) => {
    const settings = { ...system.settings(options), acceptedFlags: ["none"] };
    await worker.call("start", { place: place.address, settings, tasks, behaviour: "noop" });
    await untilIndexed(place, system.family);
    await worker.call("stop");
  });
}

/** The indexes of a key are built when its limit is declared, which takes a while beside a million rows. */
async function untilIndexed(place, family) {
  if (family !== "ours") return;
  const until = now() + 60_000;
  while (now() < until) {
    const { rows } = await place.query(`
      select count(*)::int as count from graphile_worker._hathi_limited_tasks as member
      where member.since < clock_timestamp() - interval '300 milliseconds'
        and not exists (
          select from graphile_worker._hathi_limit_indexes() as wanted
          where not graphile_worker._hathi_has_limit_index(wanted.kind, wanted.task_id, wanted.path)
        )`);
    if (rows[0].count > 0) return;
    await sleep(200);
  }
  throw new Error("The indexes of the limit were not built within 60 s.");
}
