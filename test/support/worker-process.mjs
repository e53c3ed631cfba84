// A worker in a process of its own. It is told what to do by its argument, and tells facts as lines of JSON.
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const { library, isOriginal, pool: poolOptions, crontab, tells = [], ...options } = JSON.parse(process.argv[2]);
const { run, Logger } = await import(library);

const tell = (fact) => void process.stdout.write(`${JSON.stringify(fact)}\n`);

let runs = [];
const tellRuns = () => {
  if (runs.length > 0) tell({ runs });
  runs = [];
};
setInterval(tellRuns, 20).unref();

/** Milliseconds since 1970 with their fractions, the same in all processes of a machine. */
const clock = () => performance.timeOrigin + performance.now();

/** Tells of every run: which job, of which queue, from when to when. */
const telling = (task) => async (payload, helpers) => {
  const startedAt = clock();
  try {
    await task(payload ?? {}, helpers);
  } finally {
    const { id, job_queue_id: queueId } = helpers.job;
    runs.push({ id, queueId, startedAt, endedAt: clock() });
  }
};

const tasks = {
  work: telling(async ({ ms }) => {
    if (ms) await sleep(ms);
  }),
  fail_first: telling(async (_payload, { job }) => {
    if (job.attempts === 1) throw new Error("not yet");
  }),
  fail_always: telling(async () => {
    throw new Error("never");
  }),
  /** Holds its place until the process is told to let go. */
  hold: telling(async (_payload, { job }) => {
    tell({ holds: job.id });
    await released;
  }),
};

let release;
const released = new Promise((resolve) => {
  release = resolve;
});

const logger = new Logger((scope) => (level, message) => {
  if (level !== "debug" && scope.label !== "worker") tell({ level, message });
});
const pgPool = poolOptions && new pg.Pool(poolOptions);
pgPool?.on("error", () => undefined);
pgPool?.on("connect", () => undefined);

const events = new EventEmitter();
for (const event of tells) events.on(event, () => tell({ event }));

const runner = await run({
  ...options,
  events,
  ...(pgPool && { pgPool }),
  logger,
  taskList: tasks,
  ...(isOriginal ? { parsedCronItems: [] } : { crontab: crontab ?? "" }),
});
runner.events.on("job:lost", ({ job }) => tell({ lost: job.id }));
tell({ ready: true });

const commands = createInterface({ input: process.stdin });
const stop = async () => {
  commands.close();
  process.stdin.destroy();
  await runner.stop();
  tellRuns();
  await pgPool?.end();
  tell({ stopped: true });
};
commands.on("line", (line) => {
  if (line === "release") release();
  if (line === "stop") void stop();
});
await runner.promise;
