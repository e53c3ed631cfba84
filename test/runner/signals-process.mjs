// A worker with one job that runs until it is told to end; says what it does.
import { createInterface } from "node:readline";

const [library, connectionString, mode] = process.argv.slice(2);
const { run, Logger } = await import(library);

const say = (text) => process.stdout.write(`${text}\n`);
let release;
const released = new Promise((resolve) => {
  release = resolve;
});
createInterface({ input: process.stdin }).on("line", () => release());

if (mode === "own-listener") process.on("SIGTERM", () => say("my own listener"));
const options = {
  connectionString,
  logger: new Logger(() => (level, message) => (mode === "loud" || level === "error") && say(`${level}: ${message}`)),
  noHandleSignals: mode === "no-signals",
  taskList: {
    async hold() {
      say("holding");
      await released;
    },
  },
};
const runner = await run(options);
runner.events.on("gracefulShutdown", ({ signal }) => say(`graceful ${signal}`));
runner.events.on("forcefulShutdown", ({ signal }) => say(`forceful ${signal}`));
runner.events.on("worker:release", () => {
  run({ ...options }).catch((error) => say(`refused: ${error.message}`));
});
runner.promise.then(
  () => say("promise resolved"),
  (error) => say(`promise rejected: ${error.message}`),
);
if (mode === "own-listener") {
  await runner.promise;
  const again = await run({ ...options });
  await again.stop();
  say("ran again");
  process.exit(7);
}
if (mode === "chatty") setInterval(() => say("still here"), 20);
