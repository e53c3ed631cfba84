// A worker whose jobs write what they do into the ledger: one line when a job starts, one when it ends. A line that was written survives
// the process. Its argument holds the options of `run`, the library to load and the ledger's file.
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const { library, ledger, pool, ...options } = JSON.parse(process.argv[2]);
const { run, Logger } = await import(library);

/** Milliseconds by a clock that all processes of this machine share and that nobody sets. */
const now = () => Number(process.hrtime.bigint()) / 1e6;

const write = (entry) => appendFileSync(ledger, `${JSON.stringify({ ...entry, pid: process.pid, at: now() })}\n`);

const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const circular = () => {
  const error = new Error("circular");
  error.cause = error;
  return error;
};
const throwing = (name) => Object.defineProperty(new Error("odd"), name, { get: () => process.emit.nothing.here });

/** Values that tasks throw although they should not. */
const oddities = [
  () => new Error(randomBytes(100_000).toString("base64")),
  () => throwing("message"),
  () => throwing("stack"),
  () => throwing("cause"),
  () => throwing("name"),
  () => Symbol("odd"),
  () => Object.create(null),
  () => Object.assign(Object.create(null), { message: Symbol("message"), stack: 7 }),
  circular,
  revoked,
  () => undefined,
  () => null,
  () => "NUL \0 and half a pair \ud800",
  () => new AggregateError([circular(), revoked(), throwing("message")], "several"),
];

const task = async ({ ms = 0, odd, exit, untilAttempt = 1 }, { job, abortSignal }) => {
  const entry = { job: job.id, attempt: job.attempts, queue: job.job_queue_id };
  write({ event: "start", ...entry });
  try {
    if (exit) process.kill(process.pid, "SIGKILL");
    if (ms > 0) await sleep(ms);
    if (odd !== undefined && job.attempts <= untilAttempt) throw oddities[odd % oddities.length]();
    write({ event: "done", ...entry, aborted: abortSignal.aborted });
  } catch (error) {
    write({ event: "threw", ...entry });
    throw error;
  }
};

const delays = monitorEventLoopDelay({ resolution: 10 });
delays.enable();
setInterval(() => {
  write({
    event: "health",
    heap: process.memoryUsage().heapUsed,
    rss: process.memoryUsage.rss(),
    delay: delays.max / 1e6,
  });
  delays.reset();
}, 1_000).unref();

const pgPool = pool && new pg.Pool(pool);
pgPool?.on("error", () => undefined);

const runner = await run({
  ...options,
  ...(pgPool && { pgPool }),
  ...(!options.crontab && { parsedCronItems: [] }),
  taskList: { work: (payload, helpers) => task(payload ?? {}, helpers) },
  logger: new Logger((scope) => (level, message) => {
    if (level === "warning" || level === "error")
      if (scope.label !== "job") console.log(`${Math.round(now())} ${level}: ${message}`);
  }),
});
console.log("ready");
process.stdin.on("data", (data) => {
  const clock = /^clock (.*)$/m.exec(String(data));
  if (clock) globalThis.moveClock(Number(clock[1]));
  else void runner.stop();
});
await runner.promise;
process.stdin.destroy();
await pgPool?.end();
