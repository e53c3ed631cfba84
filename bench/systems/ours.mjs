import { sleep } from "../measure/clock.mjs";
import { snapshotEntry, takeSnapshot } from "../snapshot.mjs";
import { withProcesses } from "../worker-process.mjs";
import { graphileTables } from "./graphile-worker.mjs";

const ours = {
  family: "ours",
  schema: "ours",
  worker: "ours.mjs",
  claims: /skip locked|claim/i,
  ...graphileTables,
  whyNot: () => whyNot(),
};

export const oursDefault = {
  ...ours,
  name: "ours",
  title: "Hathi",
  settings: ({ concurrency }) => ({ concurrency }),
};

export const oursSafe = {
  ...ours,
  name: "ours-safe",
  title: "Hathi, all safety on",
  settings: ({ concurrency }) => ({ concurrency, recovery: true }),
  whyNot: async (options, places) => (await whyNot()) ?? (await whyNotSafe(options, places)),
};

/** Jobs that have a timeout they never reach and a back-off of their own; only where a scenario asks for it. */
export const oursControlled = {
  ...ours,
  name: "ours-controlled",
  title: "Hathi, task options set",
  isExtra: true,
  settings: ({ concurrency }) => ({
    concurrency,
    taskOptions: { job: { timeout: "1h", backoff: { type: "exponential", delay: "10s", jitter: 0.2 } } },
  }),
};

/** What is kept of finished jobs; only where a scenario asks for it. */
const withHistory = (history, title) => ({
  ...ours,
  name: `ours-history-${history}`,
  title,
  isExtra: true,
  settings: ({ concurrency }) => ({ concurrency, history }),
});
/** Measured as with --metrics-port; only where a scenario asks for it. */
export const oursMetered = {
  ...ours,
  name: "ours-metrics",
  title: "Hathi, metrics on",
  isExtra: true,
  settings: ({ concurrency }) => ({ concurrency, metrics: true }),
};
export const oursOutcomes = withHistory("outcomes", "Hathi, history of outcomes");
export const oursFull = withHistory("full", "Hathi, full history");

async function whyNot() {
  try {
    takeSnapshot();
    const { run, makeWorkerUtils } = await import(snapshotEntry);
    return run && makeWorkerUtils ? undefined : "dist/index.js has no `run` or no `makeWorkerUtils`";
  } catch (error) {
    return `dist/index.js does not load (${error.message})`;
  }
}

/** An option that is accepted and does nothing would put the default into the table under a second name. */
async function whyNotSafe(options, places) {
  const place = await places.open(oursSafe);
  try {
    return await withProcesses([oursSafe.worker], async ([worker]) => {
      const settings = oursSafe.settings(options);
      await worker.call("start", { place: place.address, settings, tasks: ["job"], behaviour: "noop" });
      for (let tries = 0; tries < 50; tries++) {
        const { rows } = await place.query("select from graphile_worker._private_workers");
        if (rows.length > 0) return undefined;
        await sleep(100);
      }
      return "`recovery: true` is accepted, but no heartbeat appears in _private_workers within 5 s";
    });
  } catch (error) {
    return `\`recovery: true\` does not start (${error.message.split("\n")[0]})`;
  } finally {
    await place.drop();
  }
}
