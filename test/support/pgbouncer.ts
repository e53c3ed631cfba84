import { spawn, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { onTestFinished } from "vitest";
import { findFreePort } from "../../packages/embedded/src/free-port.ts";
import { until } from "./wait.ts";

/** Where Debian puts it, which is not in everybody's PATH. */
const program = ["pgbouncer", "/usr/sbin/pgbouncer"].find((name) => spawnSync(name, ["--version"]).status === 0);

export const hasPgBouncer = program !== undefined;

/** Why a test is skipped. */
export const noPgBouncer =
  "PgBouncer is not installed here ('apt-get install pgbouncer'), so nothing is shown about it";

/** It does not run as root. */
const nobody = 65_534;

/** Starts the real PgBouncer in front of a database, in transaction mode unless configured otherwise; gives the URL by way of it. It ends with the test. */
export async function startPgBouncer(databaseUrl: string, configure = configuration): Promise<string> {
  if (!program) throw new Error("PgBouncer is not installed: 'apt-get install pgbouncer' brings it.");
  const target = new URL(databaseUrl);
  const port = await findFreePort();
  const folder = mkdtempSync(join(tmpdir(), "hathi-pgbouncer-"));
  const file = join(folder, "pgbouncer.ini");
  writeFileSync(file, configure(target, port), { mode: 0o600 });
  const account = process.geteuid?.() === 0 ? { uid: nobody, gid: nobody } : {};
  if (account.uid !== undefined) for (const path of [folder, file]) chownSync(path, account.uid, account.gid);

  const child = spawn(program, [file], { ...account, cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });
  const url = new URL(databaseUrl);
  url.port = String(port);
  await until(
    () => {
      if (child.exitCode !== null) throw new Error(`PgBouncer ended with ${child.exitCode}:\n${output}`);
      return answers(url.href);
    },
    { what: `PgBouncer answers; it said\n${output}` },
  );
  return url.href;
}

/** Few connections for many clients, so that two statements of one client often meet different backends. */
export function configuration(target: URL, port: number): string {
  const password = decodeURIComponent(target.password).replaceAll("'", "''");
  return `
[databases]
* = host=${target.hostname} port=${target.port} user=${target.username} password='${password}'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_login_retry = 1
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
`;
}

/** Each client keeps its connection for as long as it stays, so there are as many as there are clients. */
export function sessionMode(target: URL, port: number): string {
  return configuration(target, port)
    .replace("pool_mode = transaction", "pool_mode = session")
    .replace("default_pool_size = 4", "default_pool_size = 60");
}

async function answers(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("select 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
