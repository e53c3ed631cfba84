import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { isRoot } from "./support/accounts.ts";
import { startChild } from "./support/child.ts";
import { makeFolder, readServerPid, until } from "./support/folders.ts";
import { makeKit } from "./support/kit.ts";
import { query } from "./support/query.ts";

let kit: string;
beforeAll(() => {
  kit = makeKit(mkdtempSync(join(realpathSync(tmpdir()), "hathi-kit-")));
});
afterAll(() => rmSync(kit, { recursive: true, force: true }));

const start = (dataDir: string) => startChild({ kit, options: { dataDir, profile: "test" } });

test("a second process attaches, and the last one to stop shuts the server down", async () => {
  const dataDir = makeFolder();
  const first = start(dataDir);
  const { connectionString } = await first.told();
  const second = start(dataDir);
  expect(await second.told()).toMatchObject({ origin: "attached", connectionString });

  expect(await first.stop()).toEqual({ stopped: false });
  expect(await query(connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(await second.stop()).toEqual({ stopped: true });
  await expect(query(connectionString, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("processes that start at the same moment end on one server", async () => {
  const dataDir = makeFolder();
  const told = await Promise.all(Array.from({ length: 6 }, () => start(dataDir).told()));

  expect(told.map(({ origin }) => origin).toSorted()).toEqual([...Array(5).fill("attached"), "started"]);
  expect(new Set(told.map(({ connectionString }) => connectionString)).size).toBe(1);
  expect(readdirSync(dataDir).toSorted()).toEqual(["holders", "password", "pgdata"]);
});

test("a start that meets the last stop ends on a running server", async () => {
  const dataDir = makeFolder();
  const first = start(dataDir);
  await first.told();
  const second = start(dataDir);
  const [, { connectionString }] = await Promise.all([first.stop(), second.told()]);
  expect(await query(connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
});

test("a killed owner leaves a server that the next start attaches to, and that its stop shuts down", async () => {
  const dataDir = makeFolder();
  const owner = start(dataDir);
  const { connectionString } = await owner.told();
  await owner.kill();
  expect(await query(connectionString, "select 1 as one")).toEqual([{ one: 1 }]);

  const next = start(dataDir);
  expect(await next.told()).toMatchObject({ origin: "attached", connectionString });
  expect(await next.stop()).toEqual({ stopped: true });
});

test("processes that start after a kill in the middle of the first start end on one whole server", async () => {
  const dataDir = makeFolder();
  const unlucky = start(dataDir);
  await until(() => readdirSync(dataDir).some((name) => name.startsWith("pgdata.")));
  await unlucky.kill();

  const told = await Promise.all([start(dataDir).told(), start(dataDir).told(), start(dataDir).told()]);
  expect(told.map(({ origin }) => origin).toSorted()).toEqual(["attached", "attached", "started"]);
  expect(new Set(told.map(({ connectionString }) => connectionString)).size).toBe(1);
});

test("a killed server is recovered with what was committed, even while a client of it lingers", async () => {
  const dataDir = makeFolder();
  const { connectionString, clusterDir } = await startChild({ kit, options: { dataDir } }).told();
  await query(connectionString, "create table kept as select 42 as answer");
  const lingering = new pg.Client({ connectionString });
  lingering.on("error", () => undefined);
  await lingering.connect();
  onTestFinished(() => lingering.end());
  process.kill(readServerPid(clusterDir)!, "SIGKILL");

  const next = await start(dataDir).told();
  expect(next.origin).toBe("started");
  expect(await query(next.connectionString, "select answer from kept")).toEqual([{ answer: 42 }]);
});

// PostgreSQL itself refuses to start while such a process is there.
test.each([
  ["a zombie", "sleep 0 & echo $!; exec sleep 600"],
  ["another program", "echo $$; exec sleep 600"],
])("a leftover process id that now belongs to %s does not keep the server down", async (_, script) => {
  const dataDir = makeFolder();
  const first = start(dataDir);
  const { clusterDir } = await first.told();
  const pidFile = join(clusterDir, "postmaster.pid");
  const leftover = readFileSync(pidFile, "utf8");
  await first.stop();

  const { uid, gid } = statSync(clusterDir);
  const keeper = spawn("/bin/sh", ["-c", script], {
    stdio: ["ignore", "pipe", "inherit"],
    ...(isRoot && { uid, gid }),
  });
  onTestFinished(async () => {
    keeper.kill("SIGKILL");
    await once(keeper, "exit");
  });
  const [pid] = (await once(createInterface({ input: keeper.stdout }), "line")) as [string];
  writeFileSync(pidFile, leftover.replace(/^\d+/, pid), { mode: 0o600 });
  chownSync(pidFile, uid, gid);

  expect(await start(dataDir).told()).toMatchObject({ origin: "started" });
});

test("Ctrl-C reaches the process but not its server, so that work can be finished first", async () => {
  const child = start(makeFolder());
  const { connectionString } = await child.told();
  process.kill(-child.process.pid!, "SIGINT");

  expect(await child.told()).toEqual({ interrupted: true, rows: [{ one: 1 }] });
  expect(await query(connectionString, "select 1 as one")).toEqual([{ one: 1 }]);
  expect(await child.stop()).toEqual({ stopped: true });
});

test("Ctrl-C in the middle of the first start does not cut it short", async () => {
  const dataDir = makeFolder();
  const child = start(dataDir);
  await until(() => readdirSync(dataDir).some((name) => name.startsWith("pgdata.")));
  process.kill(-child.process.pid!, "SIGINT");

  expect(await child.told()).toEqual({ interrupted: true });
  expect(await child.told()).toMatchObject({ origin: "started" });
});
