// A worker, its database and a first job, in one process: what `npm start` shows.
import { fileURLToPath } from "node:url";
import { startEmbedded } from "@hathi/embedded";
import { run } from "hathi";
import { serveDashboard } from "hathi/dashboard";
import { makeMetrics } from "hathi/metrics";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

console.log("1. Starting PostgreSQL, a real server from npm (set DATABASE_URL to use your own) …");
const server = process.env.DATABASE_URL ? undefined : await startEmbedded({ dataDir: here(".hathi") });
const connectionString = process.env.DATABASE_URL ?? server.connectionString;
if (server) console.log(`   It is running; connect with: psql "${connectionString}"`);

console.log("2. Starting a worker on tasks/ and crontab …");
const runner = await run({
  connectionString,
  taskDirectory: here("tasks"),
  crontabFile: here("crontab"),
  concurrency: 5,
  // If this process is killed, another worker takes over its jobs.
  recovery: true,
  // What the dashboard shows: rates and times, and what became of each job.
  metrics: makeMetrics(),
  history: "outcomes",
  noHandleSignals: true,
});

console.log("3. Serving the dashboard; open it in a browser:");
const dashboard = await serveDashboard({ connectionString, migrate: false, title: "quick start" });
console.log(`   ${dashboard.url}`);

console.log('4. Adding a job: addJob("greet", { name: "world" }) …');
await runner.addJob("greet", { name: "world" });
console.log(
  "   It runs below; the crontab adds another one every minute. Ctrl-C lets running jobs finish and stops.\n",
);

/** A terminal sends Ctrl-C to npm and to us, so the signal may come twice. */
let isStopping = false;
const stop = () => {
  if (!isStopping) void stopAll();
  isStopping = true;
};
process.on("SIGINT", stop);
process.on("SIGTERM", stop);

async function stopAll() {
  console.log("\nStopping: no new jobs are taken, running ones finish …");
  await dashboard.close();
  await runner.stop("Stopped by hand");
  await server?.stop();
  console.log("Stopped.");
  process.exit(0);
}
