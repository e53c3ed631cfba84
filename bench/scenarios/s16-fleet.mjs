import { addAndWait } from "../measure/add-and-wait.mjs";
import { now, sleep } from "../measure/clock.mjs";
import { countCalls, readReportedCommits, readStatements, resetStatements } from "../measure/counters.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { percentile } from "../measure/statistics.mjs";
import { withPgBouncer } from "../pgbouncer.mjs";
import { withProcesses } from "../worker-process.mjs";

/** Until processes know each other, and each has told of itself once more. */
const settleMs = 35_000;
/** Until a backend that has become idle has reported its commits. */
const reportMs = 11_000;

export const s16 = {
  name: "s16",
  title: "A fleet on one PostgreSQL",
  about:
    "Processes of 10 slots, directly and through PgBouncer (with a direct line for LISTEN): statements and commits while idle and for a single added job; then, in the same processes, statements per job of a backlog of trivial jobs, of another one (the first runs while Node.js still compiles), and of jobs that take 100 ms (100 for each process).",
  target:
    "at most 0.15 commits per idle process and second, a dozen per single job, which starts no later than with one process, and as many statements per job of a backlog with 40 processes as with one",
  metrics: [
    { key: "idlePerProcess", title: "statements/s per idle process", better: "lower" },
    { key: "idleCommits", title: "commits/s per idle process", better: "lower" },
    { key: "perAdd", title: "statements per added job", better: "lower" },
    { key: "commitsPerAdd", title: "commits per added job", better: "lower" },
    { key: "p50", title: "add to start, p50 ms", better: "lower" },
    { key: "p99", title: "p99 ms", better: "lower" },
    { key: "statements", title: "statements/job of a backlog", better: "lower" },
    { key: "again", title: "of another one", better: "lower" },
    { key: "rate", title: "jobs/s of that", better: "higher" },
    { key: "waiting", title: "statements/job of 100 ms", better: "lower" },
  ],
  lacks: { "bullmq-redis": "Redis keeps no count of statements per database" },
  cases: ({ quick, scale }) =>
    [1, 10, 40].flatMap((processes) =>
      ["directly", "through PgBouncer"].map((way) => ({
        title: `${processes} process${processes === 1 ? "" : "es"} ${way}`,
        processes,
        way,
        seconds: quick ? 10 : 20,
        adds: scale(100),
        jobs: scale(40_000),
      })),
    ),
  measure: (context, { processes, way, ...request }) =>
    withPlace(context, [], (direct) => {
      const reach = way === "through PgBouncer" ? withPgBouncer : (place, use) => use(place);
      return reach(direct, (place) => measureFleet(fleetOn(context, direct, place), place, { processes, ...request }));
    }),
};

/** Few connections per process; behind the pooler, notifications need a line of their own, which only ours can be given. */
function fleetOn(context, direct, place) {
  const { system } = context;
  const settings = (options) => ({
    ...system.settings(options),
    concurrency: 10,
    maxPoolSize: 3,
    ...(place !== direct && system.family === "ours" && { listenConnectionString: direct.address.connectionString }),
  });
  return { ...context, system: { ...system, settings } };
}

async function measureFleet(context, place, { processes, seconds, adds, jobs }) {
  const { system, options } = context;
  return await withProcesses(
    Array.from({ length: processes + 1 }, () => system.worker),
    async ([producer, ...workers]) => {
      const start = { place: place.address, settings: system.settings(options), tasks: ["job"], behaviour: "asked" };
      for (const worker of workers) await worker.call("start", start);
      await sleep(settleMs);
      const idle = await count(context, place, () => sleep(seconds * 1000));
      const busy = await count(context, place, async () => {
        await addAndWait(everyone(workers), producer, place, { mode: "spaced", count: adds, restMs: 100 });
        await sleep(reportMs);
      });
      const records = await Promise.all(workers.map((worker) => worker.call("record")));
      const latencies = records.flatMap((record) => record.latencies);
      const trivial = await measureBacklog(context, place, producer, { count: jobs });
      const again = await measureBacklog(context, place, producer, { count: jobs });
      const waiting = await measureBacklog(context, place, producer, { count: 100 * processes, ms: 100 });
      await Promise.all(workers.map((worker) => worker.call("stop")));
      return {
        idlePerProcess: idle.statements / idle.seconds / processes,
        idleCommits: idle.commits / idle.seconds / processes,
        perAdd: (busy.statements - (idle.statements / idle.seconds) * busy.seconds) / adds,
        commitsPerAdd: (busy.commits - (idle.commits / idle.seconds) * busy.seconds) / adds,
        p50: percentile(latencies, 0.5),
        p99: percentile(latencies, 0.99),
        statements: trivial.statements,
        again: again.statements,
        rate: again.rate,
        waiting: waiting.statements,
      };
    },
  );
}

/** Jobs that are added in one statement, until all of them are gone. */
async function measureBacklog({ server, system, options }, place, producer, request) {
  await server.admin.query("checkpoint");
  await resetStatements(server);
  await producer.call("produce", { place: place.address, mode: "batches", batchSize: request.count, ...request });
  const startedAt = now();
  let left = request.count;
  while (left > 0 && now() < startedAt + options.limitMs) {
    await sleep(20);
    left = await system.countLeft(place, { end: "gone" });
  }
  const done = request.count - left;
  return {
    rate: done / ((now() - startedAt) / 1000),
    statements: countCalls(await readStatements(server, place), /^(?!.*add_jobs)/s) / done,
  };
}

/** What the server was asked meanwhile. */
async function count({ server }, place, work) {
  const commitsBefore = await readReportedCommits(server, place);
  await resetStatements(server);
  const startedAt = performance.now();
  await work();
  return {
    seconds: (performance.now() - startedAt) / 1000,
    statements: countCalls(await readStatements(server, place)),
    commits: (await readReportedCommits(server, place)) - commitsBefore,
  };
}

/** All workers as one, as far as it is asked how many jobs have started. */
function everyone(workers) {
  return {
    call: async (command) => {
      const counts = await Promise.all(workers.map((worker) => worker.call(command)));
      return counts.reduce((sum, count) => sum + count, 0);
    },
  };
}
