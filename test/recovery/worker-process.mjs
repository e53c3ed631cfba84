// A worker with crash recovery, in a process of its own. It says what its jobs do, in plain lines.
import { setTimeout as sleep } from "node:timers/promises";

const { library, ...options } = JSON.parse(process.argv[2]);
const { run, Logger } = await import(library);

const say = (line) => process.stdout.write(`${line}\n`);

const letGo = new Promise((resolve) => process.stdin.once("data", resolve));

/** Says when a job starts, and how it ends. */
const saying = (task) => async (payload, helpers) => {
  const { id } = helpers.job;
  say(`started ${id} at ${Date.now()}`);
  helpers.abortSignal.addEventListener("abort", () => say(`aborted ${id}: ${helpers.abortSignal.reason.message}`));
  await task(payload ?? {}, helpers);
  say(`ended ${id}`);
};

const runner = await run({
  pollInterval: 500,
  ...options,
  parsedCronItems: [],
  logger: new Logger(() => (level, message) => {
    if (level === "warning" || level === "error") say(`${level}: ${message.split("\n")[0]}`);
  }),
  taskList: {
    quick: saying(async () => undefined),
    work: saying(async ({ ms }) => sleep(ms)),
    /** Until a line comes in; abort signals are not obeyed. */
    hold: saying(async () => letGo),
    compute: saying(async ({ ms }) => {
      for (const until = performance.now() + ms; performance.now() < until; );
    }),
    die: saying(async () => process.kill(process.pid, "SIGKILL")),
  },
});
runner.events.on("job:lost", ({ job }) => say(`lost ${job.id}`));
say("ready");
await runner.promise;
process.stdin.destroy();
