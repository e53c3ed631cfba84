import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { startPrivateServer } from "../support/private-server.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { Arena, type ChaosWorker, nothing, recovery } from "./kit.ts";
import { now } from "./ledger.ts";
import { startMeddlers } from "./meddlers.ts";

vi.setConfig({ testTimeout: 600_000 });

/*
 * Everything at once: applications that meddle with jobs, lost answers, forgotten connections, terminated backends, a server that restarts and
 * crashes, processes that are killed and frozen, locks that are forced open, clean-ups, and clocks that are set. Workers poll once a minute only,
 * so a wake-up that is lost shows as a job that waits. With an even seed thousands of jobs stand before all others in a queue that is held, so searches
 * of the queues are expensive and workers claim from the queues that they know. MEDDLE_SEEDS=1,2,3 MEDDLE_MS=60000 tries more.
 */
const seeds = (process.env.MEDDLE_SEEDS ?? "4").split(",").map(Number);
const everything = seeds.map((seed) => ({ seed, troubled: "everything breaks", only: undefined }));
const crashes = { seed: 21, troubled: "the server crashes again and again", only: ["crash"] };
const lengthMs = Number(process.env.MEDDLE_MS ?? 15_000);
const minute = 60_000;
/** Nobody can run these: their queue is locked by a worker that is not there. */
const addStuck = [
  "select graphile_worker.add_job('work', queue_name => 'stuck', priority => -1) from generate_series(1, 8000)",
  "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'pool-absent' where queue_name = 'stuck'",
];
const removeStuck = [
  "delete from graphile_worker._private_jobs where priority = -1",
  "delete from graphile_worker._private_job_queues where queue_name = 'stuck'",
];

test.each([...everything, crashes])(
  "whatever applications do to jobs while $troubled, none is lost, doubled, overtaken or revived ($seed)",
  async ({ seed, only }) => {
    const server = await startPrivateServer();
    onTestFinished(() => server.remove());
    const arena = new Arena(server.url, seed);
    const proxy = await startProxy(server.url);
    const bouncer = hasPgBouncer ? await startPgBouncer(server.url) : server.url;
    const kinds = [
      { pollInterval: minute },
      { pollInterval: minute, connectionString: proxy.url, preset: { worker: { localQueue: { size: 20, ttl: 100 } } } },
      { pollInterval: minute, connectionString: proxy.url, history: "outcomes", concurrency: 2 },
      // Nothing is heard through it.
      { pollInterval: 1_000, connectionString: bouncer, history: "outcomes" },
    ];
    // One is left alone: what is due finds it free.
    await arena.start({ pollInterval: minute, history: "outcomes" });
    const workers: ChaosWorker[] = await Promise.all(kinds.map((kind) => arena.start(kind)));
    const behindProxy = (): (() => void)[] => [1, 2].map((nth) => arena.excuse(workers[nth]!.pid));
    if (seed % 2 === 0) for (const text of addStuck) await arena.ask(text);
    const meddlers = startMeddlers(arena, server.url);

    const troubles: Record<string, () => Promise<unknown>> = {
      kill: async () => {
        const nth = arena.any(workers.length);
        await workers[nth]!.kill();
        // One that starts when the pooler still offers connections of before a crash says so and ends.
        workers[nth] = await arena.start(kinds[nth]).catch(() => arena.start(kinds[nth]));
      },
      freeze: async () => {
        const thaw = arena.pick(workers).freeze();
        await arena.rest(recovery.sweepThreshold + 1_500);
        thaw();
      },
      "black hole": async () => {
        const ends = behindProxy();
        proxy.blackhole();
        await arena.rest(arena.any(2) ? recovery.sweepThreshold + 1_500 : 1_000);
        proxy.restore();
        for (const end of ends) end();
      },
      "half-open": async () => {
        const ends = behindProxy();
        proxy.blackholeOpen();
        await arena.rest(recovery.sweepThreshold + 1_500);
        for (const end of ends) end();
      },
      "lost answer": async () => {
        const ends = behindProxy();
        const to = arena.pick(["claim_jobs", "complete_jobs", "fail_jobs", "return_jobs", "begin", "commit", "LISTEN"]);
        await Promise.race([proxy.cutAfter(to), arena.rest(1_500)]);
        proxy.disarm();
        for (const end of ends) end();
      },
      terminate: () =>
        arena.ask(`select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid() order by random() limit 8`),
      restart: () => server.restart("fast"),
      crash: async () => {
        const end = arena.excuse(null);
        await server.restart("immediate");
        await arena.ask("select 1");
        end();
      },
      unlock: async () => {
        const end = arena.excuse(null);
        await arena.ask(`select graphile_worker.force_unlock_workers(array(
        select distinct locked_by from graphile_worker._private_jobs where locked_by is not null order by 1 limit 1))`);
        end();
      },
      clean: async () => {
        const utils = await makeWorkerUtils({ connectionString: server.url });
        await utils.cleanup({ tasks: ["GC_JOB_QUEUES", "GC_TASK_IDENTIFIERS"] });
        await utils.release();
      },
      clock: async () => arena.pick(workers).shiftClock(arena.pick([-1, 1, -24]) * 60 * minute),
    };
    const happened: string[] = [];
    for (const end = now() + lengthMs; now() < end; ) {
      const [row] = await arena.ask<{ jobs: number }>(
        "select count(*)::int as jobs from graphile_worker._private_jobs where priority = 0",
      );
      if (row!.jobs < 200) await arena.addMixture(100).catch(() => undefined);
      await arena.rest(200 + arena.any(800));
      const name = arena.pick(only ?? Object.keys(troubles));
      happened.push(name);
      await troubles[name]!();
      await arena.ask("select 1");
    }
    await meddlers.stop();
    // Less than a poll: whatever is due by then was noticed.
    const waiting = "select from graphile_worker._private_jobs where attempts < max_attempts and priority = 0";
    await until(async () => (await arena.ask(waiting)).length === 0, { withinMs: 50_000 }).catch(() => undefined);
    for (const text of removeStuck) await arena.ask(text);
    const verdict = await arena.verdict(0);
    const revived = [...meddlers.gone].flatMap(([id, at]) =>
      arena.entries().filter(({ event, job, at: startedAt }) => event === "start" && job === id && startedAt > at),
    );
    const faults = { ...verdict, revived, failures: meddlers.failures };
    expect(faults, happened.join(", ")).toEqual({ ...nothing, revived: [], failures: [] });
  },
);
