import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The Redis that REDIS_URL names, or one of our own on a loopback port that keeps nothing. Undefined: there is none. */
export async function openRedis() {
  if (process.env.REDIS_URL) return { url: process.env.REDIS_URL, stop: async () => undefined };
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "hathi-example-redis-"));
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--save", ""];
  const child = spawn("redis-server", args, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close").catch(() => undefined);
  const isReady = await Promise.race([hears(child, "Ready to accept connections"), ended.then(() => false)]);
  const stop = async () => {
    child.kill();
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  if (isReady) return { url: `redis://127.0.0.1:${port}`, stop };
  await stop();
  return undefined;
}

async function hears(child, words) {
  for await (const line of createInterface(child.stdout)) {
    if (line.includes(words)) {
      child.stdout.resume();
      return true;
    }
  }
  return false;
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  return port;
}
