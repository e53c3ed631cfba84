// A worker whose jobs each add one to a row, in the transaction that completes them. Its argument holds the options of `run`, the library to
// load, the URL for the jobs' own connections, and which library's transactions to use; those of pg, if that is left out.
import { fileURLToPath } from "node:url";
import pg from "pg";

const { library, url, orm, ...options } = JSON.parse(process.argv[2]);
const { run, Logger } = await import(library);

const pool = new pg.Pool({ connectionString: url, max: 12, connectionTimeoutMillis: 5_000 });
pool.on("error", () => undefined);
// A connection may break in the moment in which it is handed out.
pool.on("connect", (client) => client.on("error", () => undefined));

const addOne = async (client, { job }, addJob) => {
  await client.query("update counters set n = n + 1 where id = $1", [Number(job.id) % 5_000]);
  if (Number(job.id) % 10 === 0) await addJob("follow-up", { of: job.id });
};

const ownWithPg = async (_payload, helpers) => {
  const client = await pool.connect();
  let failure;
  try {
    await client.query("begin");
    await addOne(client, helpers, helpers.withTransaction(client).addJob);
    await helpers.completeIn(client);
    await client.query("commit");
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    client.release(failure ?? false);
  }
};
const ownWithLibrary = async () => {
  // What libraries throw into the open when a connection breaks; an application would have to live with it.
  for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, () => undefined);
  const { createServer } = await import("vite");
  // It stays open: Prisma imports parts of its client when it first needs them.
  const server = { middlewareMode: true, hmr: false, ws: false, watch: null };
  const loader = await createServer({ configFile: false, appType: "custom", logLevel: "error", server });
  const { ownWith } = await loader.ssrLoadModule(fileURLToPath(new URL("../orms/once-own.ts", import.meta.url)));
  return ownWith(orm, url);
};
const own = orm ? await ownWithLibrary() : ownWithPg;
const lent = (_payload, helpers) => addOne(helpers.tx, helpers, helpers.addJob);

const runner = await run({
  ...options,
  parsedCronItems: [],
  taskList: { own, lent },
  logger: new Logger(() => (level, message) => {
    if (level === "error") console.log(`error: ${message}`);
  }),
});
const completed = [];
let lost = 0;
runner.events.on("job:complete", ({ job, outcome }) => {
  if (outcome === "succeeded") completed.push(job.id);
});
runner.events.on("job:lost", () => lost++);
console.log("ready");
process.stdin.once("data", () => void runner.stop());
await runner.promise;
console.log(`\n${JSON.stringify({ completed, lost })}`);
process.stdin.destroy();
await pool.end();
if (orm) process.exit(0); // pools of theirs keep it alive
