import { withProcesses } from "../worker-process.mjs";
import { now, sleep } from "./clock.mjs";
import { countCalls, readCommits, readServer, readStatements, resetStatements } from "./counters.mjs";

/**
 * Lets one system work off the jobs of a place and says how fast it was and what it cost.
 *
 * The clock runs from the moment `run` has resolved, or the first job has started if that is earlier, until the last row
 * is gone: connecting is not counted, the first claim is. What is not done within the limit does not count.
 */
export async function drain(
  context,
  place,
  { jobs, processes = 1, behaviour = "noop", tasks = ["job"], end = "gone", filler = 0, keepRecords = false },
) {
  const { server, system, options } = context;
  await server.admin.query("checkpoint");
  return withProcesses(
    Array.from({ length: processes }, () => system.worker),
    async (workers) => {
      const usageBefore = await Promise.all(workers.map((worker) => worker.call("usage")));
      await resetStatements(server);
      const before = await readServer(server);
      const commitsBefore = system.store ? undefined : await readCommits(server, place);
      const run = watch(workers);

      const startedAt = now();
      const ready = await Promise.all(
        workers.map((worker) =>
          worker.call("start", { place: place.address, settings: system.settings(options), tasks, behaviour }),
        ),
      );
      const { left, endedAt } = await waitForEnd({
        run,
        system,
        place,
        jobs,
        what: { end, filler },
        until: startedAt + options.limitMs,
      });

      const after = await readServer(server);
      const usage = await Promise.all(workers.map((worker) => worker.call("usage")));
      const records = keepRecords ? await Promise.all(workers.map((worker) => worker.call("record"))) : undefined;
      await stopAll(workers);
      const done = jobs - left;
      const nodeCpuMs = sum(usage.map(({ cpuMs }, i) => cpuMs - usageBefore[i].cpuMs));
      const firstAt = run.firstAt() ?? endedAt;
      const clockAt = Math.min(firstAt, ...ready.map(({ readyAt }) => readyAt));
      const statements = system.store ? undefined : countCalls(await readStatements(server, place));
      const commits = system.store ? undefined : (await readCommits(server, place)) - commitsBefore;
      return {
        rate: done / ((endedAt - clockAt) / 1000),
        done,
        startMs: firstAt - startedAt,
        samples: run.samples,
        records,
        nodeCpuUs: (nodeCpuMs * 1000) / done,
        ...(!system.store && {
          pgCpuUs: after.pgCpuMs === undefined ? undefined : ((after.pgCpuMs - before.pgCpuMs) * 1000) / done,
          walBytes: (after.walBytes - before.walBytes) / done,
          commits: commits / done,
          statements: statements === undefined ? undefined : statements / done,
        }),
        rssMb: Math.max(...usage.map(({ peakMb }) => peakMb)),
      };
    },
  );
}

/** How many jobs all workers together have started, over time. */
function watch(workers) {
  const samples = [];
  const ran = () => sum(workers.map((worker) => worker.progress.ran));
  for (const worker of workers) worker.onProgress = () => samples.push({ at: now(), ran: ran() });
  return {
    samples,
    ran,
    checkAlive: () => {
      const dead = workers.find((worker) => worker.failure);
      if (dead) throw dead.failure;
    },
    firstAt: () => {
      const known = workers.map((worker) => worker.progress.firstAt).filter((at) => at !== undefined);
      return known.length === 0 ? undefined : Math.min(...known);
    },
  };
}

/** Rows are only counted once every job has started: counting costs the server, too. */
async function waitForEnd({ run, system, place, jobs, what, until }) {
  while (run.ran() < jobs && now() < until) {
    run.checkAlive();
    await sleep(2);
  }
  for (;;) {
    const endedAt = now();
    const left = await system.countLeft(place, what);
    // The count saw the rows as they were when it began, not when it was done.
    if (left === 0 || endedAt >= until) return { left, endedAt };
    await sleep(1);
  }
}

/** A worker that hangs in its own shutdown must not hang the benchmark. */
async function stopAll(workers) {
  const stopped = Promise.all(workers.map((worker) => worker.call("stop")));
  stopped.catch(() => undefined);
  await Promise.race([stopped, sleep(10_000)]);
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}
