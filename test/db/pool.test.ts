import type { Duplex } from "node:stream";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { connectDirectly } from "../../src/db/direct-client.ts";
import { holdPool } from "../../src/db/pool.ts";
import { ConfigError } from "../../src/errors.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";

const base = { connectionString: undefined, maxPoolSize: 10, concurrency: 1 };

test("without a word about the database the error names the ways out", () => {
  const { logger } = rememberingLogger();
  const hold = () => holdPool({ ...base, logger }, {});
  expect(hold).toThrow(ConfigError);
  expect(hold).toThrow(/`connectionString`.*DATABASE_URL.*PGDATABASE/);
});

test("something that is no pool is refused", () => {
  const { logger } = rememberingLogger();
  const pgPool = "postgres:///" as unknown as pg.Pool;
  expect(() => holdPool({ ...base, pgPool, logger })).toThrow("'pgPool' must be a Pool of the package 'pg'");
});

test("PGDATABASE in the environment is enough", async () => {
  const { logger } = rememberingLogger();
  const { isOurs, release } = holdPool({ ...base, logger }, { PGDATABASE: "any" });
  expect(isOurs).toBe(true);
  await release();
});

test("a pool of ours survives a cut connection and is ended on release", async () => {
  const db = await freshDatabase();
  const { logger, lines } = rememberingLogger();
  const { pool, release } = holdPool({ ...base, connectionString: db.url, logger });
  const { rows } = await pool.query("select pg_backend_pid() as pid");
  await db.query("select pg_terminate_backend($1)", [rows[0].pid]);
  await until(() => lines.length > 0);
  expect(lines[0]).toMatchObject({ level: "debug", message: expect.stringContaining("PostgreSQL connection broke") });
  expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  await Promise.all([release(), release()]);
  expect(pool.ended).toBe(true);
});

test("a connection of ours that nobody uses is closed after the time that was asked for", async () => {
  const db = await freshDatabase();
  const { logger } = rememberingLogger();
  const [brief, long] = [50, 3_600_000].map((idleMs) =>
    holdPool({ ...base, connectionString: db.url, idleMs, logger }),
  );
  onTestFinished(async () => void (await Promise.all([brief!.release(), long!.release()])));
  await Promise.all([brief!.pool.query("select"), long!.pool.query("select")]);
  await until(() => brief!.pool.totalCount === 0);
  expect(long!.pool.totalCount).toBe(1);
});

test("a user's bare pool is lent handlers, with a warning, until release; it is never ended", async () => {
  const pgPool = new pg.Pool({ connectionString: "postgres:///unused" });
  onTestFinished(() => pgPool.end());
  const { logger, lines } = rememberingLogger();
  const { pool, isOurs, release } = holdPool({ ...base, pgPool, logger });
  expect([pool, isOurs]).toEqual([pgPool, false]);
  expect(lines).toEqual([
    { level: "warning", message: expect.stringContaining("no handler for 'error' and 'connect' events") },
  ]);
  expect([pgPool.listenerCount("error"), pgPool.listenerCount("connect")]).toEqual([1, 1]);
  await release();
  expect([pgPool.listenerCount("error"), pgPool.listenerCount("connect")]).toEqual([0, 0]);
  expect(pgPool.ended).toBe(false);
});

test("two borrowers of one bare pool: releasing one leaves the other its handlers", async () => {
  const pgPool = new pg.Pool({ connectionString: "postgres:///unused" });
  onTestFinished(() => pgPool.end());
  const [utils, runner] = [rememberingLogger(), rememberingLogger()];
  const first = holdPool({ ...base, pgPool, logger: utils.logger });
  const second = holdPool({ ...base, pgPool, logger: runner.logger });
  expect([utils.lines.length, runner.lines.length]).toEqual([1, 0]);
  await first.release();
  await first.release();
  expect([pgPool.listenerCount("error"), pgPool.listenerCount("connect")]).toEqual([1, 1]);
  pgPool.emit("error", new Error("it broke"), undefined as never);
  expect(runner.lines).toEqual([{ level: "error", message: expect.stringContaining("it broke") }]);
  await second.release();
  expect([pgPool.listenerCount("error"), pgPool.listenerCount("connect")]).toEqual([0, 0]);
});

test("a user's pool with handlers is not touched", async () => {
  const pgPool = new pg.Pool({ connectionString: "postgres:///unused" });
  onTestFinished(() => pgPool.end());
  pgPool.on("error", () => undefined);
  pgPool.on("connect", () => undefined);
  const { logger, lines } = rememberingLogger();
  const { release } = holdPool({ ...base, pgPool, logger });
  expect(lines).toEqual([]);
  expect(pgPool.listenerCount("error")).toBe(1);
  await release();
  expect(pgPool.listenerCount("error")).toBe(1);
});

test("a pool smaller than the concurrency gets a warning", async () => {
  const { logger, lines } = rememberingLogger();
  const { release } = holdPool({ connectionString: "postgres:///unused", maxPoolSize: 2, concurrency: 5, logger });
  expect(lines).toEqual([{ level: "warning", message: expect.stringContaining("at most 2 connections for 5 jobs") }]);
  await release();
});

test.each(["a pool", "a direct connection"])(
  "%s whose peer went silent does not keep the process alive: its socket is destroyed soon after its end",
  async (what) => {
    const db = await freshDatabase();
    const proxy = await startProxy(db.url);
    const { logger } = rememberingLogger();
    const held = holdPool({ ...base, connectionString: proxy.url, logger });
    const client = what === "a pool" ? await held.pool.connect() : await connectDirectly(proxy.url);
    const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
    if (what === "a pool") client.release();
    proxy.blackholeOpen();
    await held.release();
    if (what !== "a pool") client.release();
    expect(stream.destroyed).toBe(false);
    await until(() => stream.destroyed, { what: "the socket is destroyed" });
  },
);
