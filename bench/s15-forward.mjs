// S15: the rate to NATS beside the plain drain rate, and beside a loop that one would write by hand. It needs nats-server, and the clients of
// test/forward (npm ci there); it is run on its own: node bench/s15-forward.mjs [--jobs 100000] [--rounds 3]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import pg from "pg";
import { processCpuMs, serverCpuMs } from "./measure/cpu.mjs";
import { startServer } from "./server.mjs";

const { values } = parseArgs({ options: { jobs: { type: "string" }, rounds: { type: "string" } } });
const count = Number(values.jobs ?? 100_000);
const rounds = Number(values.rounds ?? 3);

const clients = createRequire(new URL("../test/forward/package.json", import.meta.url));
const load = (name) => import(pathToFileURL(clients.resolve(name)).href);
const { connect } = await load("@nats-io/transport-node");
const { jetstream, jetstreamManager } = await load("@nats-io/jetstream");
const { Logger, run, runMigrations } = await import("../dist/index.js");
const { forward, nats } = await import("../dist/forward/index.js");

const quiet = { noHandleSignals: true, logger: new Logger(() => () => undefined) };
const folder = mkdtempSync(join(tmpdir(), "hathi-s15-"));
const port = await freePort();
const broker = spawn("nats-server", ["-a", "127.0.0.1", "-p", String(port), "-js", "-sd", join(folder, "nats")], {
  stdio: "ignore",
});
const server = await startServer({ dataDir: join(folder, "postgres"), databaseUrl: undefined });
const connectionString = server.connectionString;
const pool = new pg.Pool({ connectionString, max: 4 });
await runMigrations({ connectionString });
const connection = await connect({ servers: `127.0.0.1:${port}`, waitOnFirstConnect: true, maxReconnectAttempts: -1 });
const manager = await jetstreamManager(connection);
await manager.streams.add({ name: "S15", subjects: ["s15.>"] });
const client = jetstream(connection);

const ways = { "plain drain": drain, "forward() to NATS": forwardAll, "hand-written loop to NATS": loop };
for (let round = 1; round <= rounds; round++) {
  for (const [name, work] of Object.entries(ways)) {
    await fill();
    await manager.streams.purge("S15");
    const [startedAt, before] = [performance.now(), readCpu()];
    await work();
    const [seconds, after] = [(performance.now() - startedAt) / 1000, readCpu()];
    const { state } = await manager.streams.info("S15");
    // CPU per job tells more than the rate where other programs are running.
    const cpu = Object.keys(after).map((who) => `${who} ${Math.round(((after[who] - before[who]) * 1000) / count)}`);
    console.log(
      `${round} ${name.padEnd(26)} ${Math.round(count / seconds)} jobs/s, ${state.messages} messages; µs of CPU per job: ${cpu.join(", ")}`,
    );
  }
}
await connection.close();
await pool.end();
await server.stop?.();
broker.kill();
rmSync(folder, { recursive: true, force: true });
process.exit(0);

function readCpu() {
  const { user, system } = process.cpuUsage();
  return {
    node: (user + system) / 1000,
    postgres: serverCpuMs(server.postmasterPid),
    nats: processCpuMs(broker.pid),
  };
}

async function fill() {
  await pool.query("truncate graphile_worker._private_jobs");
  await pool.query(
    `select count(*) from graphile_worker.add_jobs(array(
       select ('s15', '{"to":"ada@example.com"}', null, null, null, null, null, null)::graphile_worker.job_spec from generate_series(1, $1)))`,
    [count],
  );
  await pool.query("vacuum analyze graphile_worker._private_jobs");
}

async function isEmpty() {
  const { rows } = await pool.query("select from graphile_worker._private_jobs limit 1");
  return rows.length === 0;
}

async function until(fact) {
  while (!(await fact())) await new Promise((resolve) => setTimeout(resolve, 20));
}

async function drain() {
  const runner = await run({ connectionString, concurrency: 24, ...quiet, taskList: { s15: () => undefined } });
  await until(isEmpty);
  await runner.stop();
}

async function forwardAll() {
  const forwarder = forward({ tasks: ["s15"], to: nats({ client, subject: "s15.mail" }) });
  const runner = await run({ connectionString, ...quiet, taskList: {}, forward: [forwarder] });
  await until(isEmpty);
  await runner.stop();
}

/** As good as one would write it: batches of 500, published at once, deleted when they are confirmed. */
async function loop() {
  const worker = await pool.connect();
  for (;;) {
    await worker.query("begin");
    const { rows } = await worker.query(
      `select id, payload from graphile_worker._private_jobs
       where is_available order by priority, run_at, id limit 500 for update skip locked`,
    );
    await Promise.all(
      rows.map(({ id, payload }) => client.publish("s15.mail", JSON.stringify(payload), { msgID: `loop-${id}` })),
    );
    await worker.query("delete from graphile_worker._private_jobs where id = any ($1)", [rows.map(({ id }) => id)]);
    await worker.query("commit");
    if (rows.length === 0) break;
  }
  worker.release();
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port: free } = probe.address();
  probe.close();
  await once(probe, "close");
  return free;
}
