import { sleep } from "../measure/clock.mjs";
import { countCalls, readServer, readStatements, resetStatements } from "../measure/counters.mjs";
import { withPlace } from "../measure/drain-filled.mjs";
import { withProcesses } from "../worker-process.mjs";

export const s8 = {
  name: "s8",
  title: "Idle workers, and how many claims one insert causes",
  about: "Statements and CPU of waiting processes; then 100 single adds per second.",
  target: "idle at least 5 × fewer statements than graphile-worker; at most one claim per process and wake-up",
  metrics: [
    { key: "statementsPerSecond", title: "statements/s idle", better: "lower" },
    { key: "claimsPerAdd", title: "claims per add", better: "lower" },
  ],
  lacks: { "bullmq-redis": "Redis keeps no count of statements per database" },
  cases: ({ quick }) => [
    { title: "1 process", processes: 1, seconds: quick ? 4 : 20 },
    { title: "4 processes", processes: 4, seconds: quick ? 4 : 20 },
  ],
  measure: (context, { processes, seconds }) =>
    withPlace(context, [], (place) =>
      withProcesses(
        Array.from({ length: processes + 1 }, () => context.system.worker),
        async ([producer, ...workers]) => {
          const settings = { ...context.system.settings(context.options) };
          await Promise.all(
            workers.map((worker) =>
              worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "stamp" }),
            ),
          );
          await sleep(2000);
          const idle = await watchFor(context, place, workers, seconds);
          const busy = await countClaims(context, place, producer, seconds * 50);
          await Promise.all(workers.map((worker) => worker.call("stop")));
          return { ...idle, ...busy };
        },
      ),
    ),
};

async function watchFor({ server }, place, workers, seconds) {
  const nodeCpu = async () =>
    (await Promise.all(workers.map((worker) => worker.call("usage")))).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
  const [nodeBefore, before] = [await nodeCpu(), await readServer(server)];
  await resetStatements(server);
  await sleep(seconds * 1000);
  const statements = await readStatements(server, place);
  const [nodeAfter, after] = [await nodeCpu(), await readServer(server)];
  return {
    statementsPerSecond: statements && countCalls(statements) / seconds,
    nodeCpuPercent: ((nodeAfter - nodeBefore) / (seconds * 1000)) * 100,
    pgCpuPercent: after.pgCpuMs === undefined ? undefined : ((after.pgCpuMs - before.pgCpuMs) / (seconds * 1000)) * 100,
  };
}

async function countClaims({ server, system }, place, producer, count) {
  await resetStatements(server);
  await producer.call("produce", { place: place.address, mode: "steady", count, perSecond: 100 });
  await sleep(500);
  const statements = await readStatements(server, place);
  return {
    claimsPerAdd: statements && countCalls(statements, system.claims) / count,
    statementsPerAdd: statements && countCalls(statements) / count,
  };
}
