import { now, sleep } from "../measure/clock.mjs";
import { readServer, readStatements, resetStatements } from "../measure/counters.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { oursMetered } from "../systems/ours.mjs";
import { withProcesses } from "../worker-process.mjs";

const notMeasured = "it does not measure itself, or that was not tried";
/** What only a worker with metrics sends. */
const sentForMetrics = /_hathi_read_rollup|_hathi_record_times/;

/**
 * Half of the processes have metrics on and half have not, and all drain the same table at the same time: what the machine does
 * meanwhile hits both alike, which no two drains in turns have in common. The server's part is the time of the statements that
 * only metrics send; one process sends most of them for all.
 */
export const s19 = {
  name: "s19",
  title: "What metrics cost a drain",
  about:
    "Trivial jobs, half of the processes with metrics and half without, in the same drain; CPU per job of each half once a fifth is done.",
  target: "below 2 % of all CPU time",
  metrics: [
    { key: "percent", title: "% of all CPU", better: "lower" },
    { key: "nodeOffUs", title: "Node µs per job without", better: "lower" },
    { key: "nodeOnUs", title: "Node µs per job with", better: "lower" },
    { key: "serverPercent", title: "% of the server's statement time", better: "lower" },
  ],
  lacks: { "graphile-worker": notMeasured, "pg-boss": notMeasured, bullmq: notMeasured },
  cases: ({ scale }) =>
    [2, 4].map((processes) => ({ title: `${processes} processes`, jobs: scale(800_000), processes })),
  measure: (context, { jobs, processes }) =>
    withPlace(context, [{ count: jobs }], async (place) => {
      await context.server.admin.query("checkpoint");
      const scripts = Array.from({ length: processes }, () => context.system.worker);
      return withProcesses(scripts, (workers) => measureHalves(context, place, workers, jobs));
    }),
};

let rounds = 0;

async function measureHalves({ system, options, server }, place, workers, jobs) {
  // Which half comes first changes from round to round.
  const round = rounds++;
  const isMetered = (i) => (i + round) % 2 === 0;
  await resetStatements(server);
  await Promise.all(
    workers.map((worker, i) => {
      const plain = system.settings(options);
      const settings = isMetered(i) ? { ...plain, ...oursMetered.settings(options) } : plain;
      return worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "noop" });
    }),
  );
  const until = now() + options.limitMs;
  const read = async () => ({
    server: (await readServer(server)).pgCpuMs,
    cpuMs: (await Promise.all(workers.map((worker) => worker.call("usage")))).map(({ cpuMs }) => cpuMs),
    ran: workers.map((worker) => worker.progress.ran),
  });
  await haveRun(workers, jobs * 0.2, until);
  const before = await read();
  await haveRun(workers, jobs * 0.97, until);
  const after = await read();
  await haveRun(workers, jobs, until);

  const done = after.ran.map((count, i) => count - before.ran[i]);
  const perJobUs = (metered) => {
    const ofHalf = (values) => sum(values.filter((_, i) => isMetered(i) === metered));
    return (ofHalf(after.cpuMs.map((ms, i) => ms - before.cpuMs[i])) * 1000) / ofHalf(done);
  };
  const [nodeOffUs, nodeOnUs] = [perJobUs(false), perJobUs(true)];
  const serverUs = ((after.server - before.server) * 1000) / sum(done);
  const serverShare = await shareOfMetrics(server, place);
  await Promise.all(workers.map((worker) => worker.call("stop")));
  return {
    percent: (100 * (nodeOnUs - nodeOffUs + serverUs * serverShare)) / (nodeOffUs + serverUs * (1 - serverShare)),
    nodeOffUs,
    nodeOnUs,
    serverPercent: 100 * serverShare,
    pgCpuUs: serverUs,
  };
}

/** A process that died, or does not get on, must not hang the benchmark. */
async function haveRun(workers, count, until) {
  while (sum(workers.map((worker) => worker.progress.ran)) < count) {
    const dead = workers.find((worker) => worker.failure);
    if (dead) throw dead.failure;
    if (now() > until) throw new Error("The jobs were not done within the limit; it needs a higher --limit.");
    await sleep(5);
  }
}

async function shareOfMetrics(server, place) {
  const statements = await readStatements(server, place);
  if (!statements) throw new Error("The server's part is not known without pg_stat_statements.");
  const time = (some) => sum(some.map(({ ms }) => ms));
  return time(statements.filter(({ query }) => sentForMetrics.test(query))) / time(statements);
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
