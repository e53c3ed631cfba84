import { spawn } from "node:child_process";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { sleep } from "./measure/clock.mjs";

/** It does not run as root. */
const nobody = 65_534;

/** Calls `use` with the place by way of a PgBouncer of our own in transaction mode, which ends afterwards. */
export async function withPgBouncer(place, use) {
  const url = new URL(place.address.connectionString);
  const port = await freePort();
  const folder = await mkdtemp(join(tmpdir(), "hathi-bench-pgbouncer-"));
  const file = join(folder, "pgbouncer.ini");
  await writeFile(file, configuration(url, port), { mode: 0o600 });
  const account = process.geteuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  if (account.uid !== undefined) for (const path of [folder, file]) await chown(path, account.uid, account.gid);
  // Debian puts it into a folder that is not on every PATH.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  const child = spawn("pgbouncer", [file], { ...account, env, cwd: folder, stdio: "ignore" });
  const ended = new Promise((resolve) => {
    child.once("error", (error) => resolve(`PgBouncer does not start (${error.message})`));
    child.once("exit", (code) => resolve(`PgBouncer ended with exit code ${code}`));
  });
  url.port = String(port);
  try {
    const failure = await Promise.race([ended, answers(url.href)]);
    if (failure) throw new Error(failure);
    return await use({ ...place, address: { connectionString: url.href } });
  } finally {
    child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  }
}

function configuration({ hostname, port, username, password }, listenPort) {
  return `
[databases]
* = host=${hostname} port=${port} user=${username} password='${decodeURIComponent(password).replaceAll("'", "''")}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 10
max_client_conn = 300
ignore_startup_parameters = extra_float_digits
`;
}

async function answers(connectionString) {
  for (let tries = 0; tries < 100; tries++) {
    const client = new pg.Client({ connectionString });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("select 1");
      return undefined;
    } catch {
      await sleep(50);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  return "PgBouncer does not answer";
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
