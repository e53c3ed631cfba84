import pg from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { examineHealth } from "../../src/admin/doctor.ts";
import { poolDatabase } from "../../src/db/database.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { run } from "../../src/runner/run.ts";
import { rememberingLogger } from "../support/log.ts";
import { type PrivateServer, startPrivateServer } from "../support/private-server.ts";
import { until } from "../support/wait.ts";
import { sample } from "./kit.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let server: PrivateServer;
let pool: pg.Pool;
beforeAll(async () => {
  server = await startPrivateServer({ max_prepared_transactions: 5 });
  pool = new pg.Pool({ connectionString: server.url });
  pool.on("error", () => undefined);
});
afterAll(async () => {
  await pool.end();
  await server.remove();
});

interface Guard {
  prometheus(): Promise<string>;
  /** Waits for the warning about it, and gives it. */
  warned(what: RegExp): Promise<string>;
  warnings(what: RegExp): string[];
}

/** A worker that warns of whatever holds back vacuum, however short. */
async function startGuard(): Promise<Guard> {
  const { logger, lines } = rememberingLogger();
  const metrics = makeMetrics({ vacuumWarningAfter: 0 });
  const taskList = { work: () => undefined };
  const runner = await run({ connectionString: server.url, logger, noHandleSignals: true, taskList, metrics });
  onTestFinished(() => runner.stop());
  const warnings = (what: RegExp): string[] =>
    lines
      .map(({ message }) => message)
      .filter((message) => message.startsWith("Vacuum is held back") && what.test(message));
  const warned = async (what: RegExp): Promise<string> => {
    await afterCollecting(() => warnings(what).length > 0, String(what));
    return warnings(what)[0]!;
  };
  return { prometheus: () => metrics.prometheus(), warnings, warned };
}

/** Waits for what becomes true when figures are collected again, which is due at once. */
function afterCollecting(fact: () => boolean | Promise<boolean>, what: string): Promise<boolean> {
  const ask = async (): Promise<boolean> => {
    await pool.query("update graphile_worker._hathi_rollup set due_at = '-infinity'");
    return await fact();
  };
  return until(ask, { withinMs: 60_000, what });
}

async function doctorSays(): Promise<string> {
  const database = poolDatabase(pool, { schema: "graphile_worker", preparedStatements: true });
  return (await examineHealth(database)).find(({ name }) => name === "oldest transaction")!.message;
}

async function openSession(config: object = {}): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url, application_name: "forgetful", ...config });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

test("a session that idles in a transaction is named by doctor, metrics and one warning, and ends as they say", async () => {
  const guard = await startGuard();
  const client = await openSession();
  await client.query("begin isolation level repeatable read");
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const { pid } = rows[0]!;

  const about = new RegExp(`process ${pid} of .*forgetful, idle in transaction`);
  const warning = await guard.warned(about);
  expect(await doctorSays()).toContain(`process ${pid} of`);
  const labels = { kind: "session", holder: String(pid) };
  const seconds = async (): Promise<number | undefined> =>
    sample(await guard.prometheus(), "hathi_xmin_age_seconds", labels);
  expect(await seconds()).toBeGreaterThan(0);
  // It is collected again, and not reported again.
  const before = (await seconds())!;
  await afterCollecting(async () => (await seconds())! > before, "its age was collected again");
  expect(guard.warnings(about)).toHaveLength(1);

  await pool.query(/select pg_terminate_backend\(\d+\)/.exec(warning)![0]);
  await afterCollecting(async () => (await seconds()) === undefined, "it is gone");
});

test("a prepared transaction is named, and ends as the warning says", async () => {
  const guard = await startGuard();
  const client = await openSession();
  await client.query("begin; create table prepared_things (); prepare transaction 'left ''behind'");
  await client.end();
  const warning = await guard.warned(/prepared transaction 'left ''behind'/);
  expect(await doctorSays()).toContain("prepared transaction");
  const labels = { kind: "prepared", holder: "left 'behind" };
  expect(sample(await guard.prometheus(), "hathi_xmin_age_transactions", labels)).toBeGreaterThan(0);
  await pool.query(/rollback prepared '.*'/.exec(warning)![0]);
  expect((await pool.query("select from pg_prepared_xacts")).rowCount).toBe(0);
});

test.each([true, false])("a standby that holds back vacuum is named (by its replication slot: %s)", async (hasSlot) => {
  const guard = await startGuard();
  if (hasSlot) await pool.query("select pg_create_physical_replication_slot('far_away', true)");
  const standby = await openSession({ application_name: "replica1", replication: "true" });
  const { rows } = await pool.query<{ xmin: string; lsn: string }>(
    "select txid_current()::text as xmin, pg_current_wal_flush_lsn()::text as lsn",
  );
  const { xmin, lsn } = rows[0]!;
  // As a standby with hot_standby_feedback sends it: the oldest transaction that its queries need.
  const feedback = Buffer.alloc(25);
  feedback.write("h");
  feedback.writeUInt32BE(Number(xmin), 9);
  const { connection } = standby as unknown as {
    connection: {
      once(name: string, then: () => void): void;
      sendCopyFromChunk(chunk: Buffer): void;
      stream: { destroy(): void };
    };
  };
  connection.once("replicationStart", () => connection.sendCopyFromChunk(feedback));
  const slot = hasSlot ? "SLOT far_away " : "";
  const streaming = standby.query(`START_REPLICATION ${slot}PHYSICAL ${lsn}`).catch(() => undefined);

  const warning = await guard.warned(hasSlot ? /replication slot far_away \(active\)/ : /standby replica1/);
  expect(warning).toContain("hot_standby_feedback = off");
  expect(await doctorSays()).toContain(hasSlot ? "replication slot far_away" : "standby replica1");
  connection.stream.destroy();
  await streaming;
  if (!hasSlot) return;

  const left = await guard.warned(/replication slot far_away \(inactive\)/);
  await pool.query(/select pg_drop_replication_slot\('far_away'\)/.exec(left)![0]);
});
