import { randomBytes } from "node:crypto";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "@hathi/embedded";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { migrate } from "../../src/db/migrate.ts";
import { serverFolder } from "./server-folder.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** A server for this run: its URL, the prefix of every database that belongs to the run, and whether it can clone files. */
    postgres: { url: string; prefix: string; clones: boolean };
  }
}

/** Gives all test files one PostgreSQL server and a template database with the schema in it. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await startServer();
  if (server.isLocal) {
    await makeLoginsCheap(server.url);
    await dropLeftovers(server.url);
  }
  const prefix = `hathi_test_${process.pid}_${randomBytes(3).toString("hex")}`;
  await makeTemplate(server.url, `${prefix}_template`);
  project.provide("postgres", { url: server.url, prefix, clones: await canClone(server.url) });
  return async () => {
    await dropDatabases(server.url, prefix);
    await server.stop();
  };
}

async function startServer(): Promise<{ url: string; isLocal: boolean; stop(): Promise<void> }> {
  const given = process.env.TEST_DATABASE_URL;
  if (given) return { url: given, isLocal: false, stop: async () => undefined };
  const version = process.env.POSTGRES_VERSION || undefined;
  // A fixed folder: runs at the same time share the server, and one that was killed leaves nothing behind for good.
  const embedded = await startEmbedded({
    dataDir: join(serverFolder(), `hathi-test-${userInfo().uid}-${version ?? "default"}`),
    profile: "test",
    version,
    nativeDir: version ? fileURLToPath(new URL("../postgres", import.meta.url)) : undefined,
    // While a client hangs in its authentication, as behind a proxy that went silent, no database of the server can be dropped.
    settings: { max_connections: 300, authentication_timeout: 10 },
  });
  return { url: embedded.connectionString, isLocal: true, stop: async () => void (await embedded.stop()) };
}

/** The tests connect tens of thousands of times; 4,096 rounds of hashing the password took a quarter of the CPU time of each login. */
async function makeLoginsCheap(serverUrl: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    // PostgreSQL has the setting since version 16.
    const { rows } = await client.query("select from pg_settings where name = 'scram_iterations'");
    if (rows.length === 0) return;
    // Another run may do the same now.
    await client.query("select pg_advisory_lock(hashtext('hathi_test'))");
    await client.query("set scram_iterations = 1");
    await client.query(
      `alter role current_user password ${pg.escapeLiteral(decodeURIComponent(new URL(serverUrl).password))}`,
    );
  });
}

/** From PostgreSQL 18 on the kernel can copy a database's files, which takes half of the CPU time. */
function canClone(serverUrl: string): Promise<boolean> {
  return withClient(serverUrl, async (client) => {
    const { rows } = await client.query(
      "select from pg_settings where name = 'file_copy_method' and 'clone' = any (enumvals)",
    );
    return rows.length > 0;
  });
}

async function makeTemplate(serverUrl: string, name: string): Promise<void> {
  await withClient(serverUrl, (client) => client.query(`create database ${name} template template0`));
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  const pool = new pg.Pool({ connectionString: url.href, max: 1 });
  const client = await pool.connect();
  try {
    await migrate({ client, schema: "graphile_worker" });
  } finally {
    client.release();
    await pool.end();
  }
  // The first session after a change of the catalogs caches them in a file, which the copies of the database then have, too.
  await withClient(url.href, (again) => again.query("select"));
}

async function dropDatabases(serverUrl: string, prefix: string): Promise<void> {
  await withClient(serverUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>(
      "select datname from pg_database where starts_with(datname, $1)",
      [prefix],
    );
    for (const { datname } of rows) await client.query(`drop database if exists ${datname} with (force)`);
  });
}

/** What killed runs could not drop themselves. */
async function dropLeftovers(serverUrl: string): Promise<void> {
  const names = await withClient(serverUrl, async (client) => {
    const { rows } = await client.query<{ datname: string }>("select datname from pg_database");
    return rows.map(({ datname }) => datname);
  });
  const prefixes = new Set(names.flatMap((name) => /^hathi_test_\d+_/.exec(name)?.[0] ?? []));
  for (const prefix of prefixes) {
    if (!isAlive(Number(prefix.split("_")[2]))) await dropDatabases(serverUrl, prefix);
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

async function withClient<T>(url: string, callback: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await callback(client);
  } finally {
    await client.end();
  }
}
