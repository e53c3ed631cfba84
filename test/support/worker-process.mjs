// A worker in a process of its own. It is told what to do by its argument, and tells facts as lines of JSON.
import { EventEmitter } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const { library, isOriginal, pool: poolOptions, crontab, tells = [], ...options } = JSON.parse(process.argv[2]);
const module = await import(library);
const { run, Logger } = module.run ? module : module.default;

const tell = (fact) => void process.stdout.write(`${JSON.stringify(fact)}\n`);

/** Milliseconds by the monotonic clock, which is one for all processes of a machine. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;

let startedCount = 0;

/** Tells when a job starts, is told to stop, and ends: at once, since the process may be killed. */
const telling = (task) => async (payload, helpers) => {
  const { id, task_identifier: name, job_queue_id: queueId, locked_by: pool, attempts: attempt } = helpers.job;
  const startedAt = clock();
  startedCount++;
  tell({ started: { id, at: startedAt, pool, attempt } });
  helpers.abortSignal?.addEventListener("abort", () => {
    tell({ aborted: { id, reason: String(helpers.abortSignal.reason?.message) } });
  });
  try {
    await task(payload ?? {}, helpers);
  } finally {
    tell({ run: { id, task: name, queueId, pool, startedAt, endedAt: clock() } });
  }
};

const tasks = {
  work: telling(async ({ ms }) => {
    if (ms) await sleep(ms);
  }),
  /** The same under another name. */
  toil: telling(async ({ ms }) => {
    if (ms) await sleep(ms);
  }),
  fail_first: telling(async (_payload, { job }) => {
    if (job.attempts === 1) throw new Error("not yet");
  }),
  fail_always: telling(async () => {
    throw new Error("never");
  }),
  /** Ends its first attempt as it is told, and succeeds in the next. */
  end: telling(async ({ as, ms }, { job, abortPromise }) => {
    await sleep(ms);
    if (as === "exhaust") throw new Error("as always");
    if (job.attempts > 1) return;
    if (as === "fail") throw new Error("not yet");
    if (as === "timeOut") await abortPromise;
    if (as === "snooze") throw new module.SnoozeError(1);
    if (as === "giveUp") throw new module.UnrecoverableError("no use");
    if (as === "cancel") throw new module.CancelJobError("not needed");
  }),
  /** Holds its place until its signal fires, and throws its reason; or until the process is told to let go. */
  obey: telling(async (_payload, { job, abortPromise }) => {
    tell({ holds: job.id });
    await Promise.race([abortPromise, released]);
  }),
  /** Holds the event loop, too: by sleeping, so that the processor is free for other tests. All that the worker has is the clock. */
  compute: telling(({ ms }) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)),
  /** The first time it waits until so many jobs have started here. */
  exit: telling(async ({ ms, beside = 0 }, { job }) => {
    await sleep(ms);
    while (!job.last_error && startedCount < beside) await sleep(10);
    process.exit(1);
  }),
  die: telling(() => process.kill(process.pid, "SIGKILL")),
  /** Holds its place until the process is told to let go; abort signals are not obeyed. */
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
  const isOfJob = scope.label === "worker";
  if (level === "warning" || level === "error" || (level !== "debug" && !isOfJob)) tell({ level, message, isOfJob });
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
  await runner.stop();
  await pgPool?.end();
  tell({ stopped: true });
};
commands.on("line", (line) => {
  if (line === "release") release();
  if (line.startsWith("clock ")) globalThis.moveClock(Number(line.slice(6)));
  if (line === "stop") void stop();
});
await runner.promise;
commands.close();
process.stdin.destroy();
