import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";

let server;
let starting;

/** A Redis of our own on a loopback port, with its default settings: it does not flush before it answers. */
export const redisStore = {
  /** Starts it, once for all systems that use it. Says why not if it does not start. */
  start(options) {
    starting ??= startServer(options);
    return starting;
  },

  version: () => server?.version,

  async openPlace(system, fill) {
    await server.client.flushall();
    const place = { address: { redisPort: server.port }, drop: () => server.client.flushall() };
    await fill?.(place, system);
    return place;
  },

  async countLeft(prefix) {
    const { client } = server;
    const counts = await Promise.all([
      client.llen(`${prefix}:wait`),
      client.llen(`${prefix}:active`),
      client.zcard(`${prefix}:prioritized`),
    ]);
    return counts.reduce((sum, count) => sum + count, 0);
  },

  async stop() {
    if (!server) return;
    const { client, child, ended, folder } = server;
    server = undefined;
    client.disconnect();
    child.kill("SIGTERM");
    await ended;
    await rm(folder, { recursive: true, force: true });
  },
};

async function startServer({ redis: program }) {
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "hathi-bench-redis-"));
  const child = spawn(program, ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder], { stdio: "ignore" });
  const failed = new Promise((resolve) => {
    child.once("error", (error) => resolve(`redis-server does not start (${error.message})`));
    child.once("exit", (code) => resolve(`redis-server ended with exit code ${code}`));
  });
  const client = new Redis({ port, host: "127.0.0.1", maxRetriesPerRequest: null, retryStrategy: () => 50 });
  client.on("error", () => undefined);
  const reason = await Promise.race([failed, client.ping().then(() => undefined)]);
  if (reason) {
    client.disconnect();
    await rm(folder, { recursive: true, force: true });
    return reason;
  }
  const version = /redis_version:(\S+)/.exec(await client.info("server"))?.[1];
  server = { port, folder, child, client, version, ended: failed };
  return undefined;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
