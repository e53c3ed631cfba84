import { expect, onTestFinished, test } from "vitest";
import { awaitOldWorkers } from "../../src/db/await-old-workers.ts";
import { pendingBreak, readMigration, shippedMigrations } from "../../src/db/plan-migration.ts";
import { examineSchema } from "../../src/db/schema-state.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { addJob, registered, startRecovering } from "./kit.ts";

const future = 999_999;

async function wait(database: TestDatabase, maxWaitMs: number): Promise<{ isClear: boolean; messages: string[] }> {
  const { logger, lines } = rememberingLogger();
  const client = await database.pool.connect();
  try {
    const isClear = await awaitOldWorkers({ client, schema: database.schema, migration: future, maxWaitMs, logger });
    return { isClear, messages: lines.map(({ message }) => message) };
  } finally {
    client.release();
  }
}

test("a breaking migration waits until old workers have finished their jobs and gone, with exit code 57", async () => {
  const database = await freshDatabase();
  const worker = await startRecovering(database, { useNotifications: false });
  const id = await addJob(database, "hold");
  await until(() => worker.started().includes(id));
  const names = await registered(database);

  const waiting = wait(database, 30_000);
  await worker.says(/breaking migration/);
  expect(await registered(database)).toEqual(names);
  worker.release();
  expect(await waiting).toEqual({ isClear: true, messages: [expect.stringContaining(names[0]!)] });
  expect(worker.finished()).toEqual([id]);
  expect(await worker.ended).toBe(57);
}, 60_000);

test("it goes on when the time is up, and says who is still there", async () => {
  const database = await freshDatabase();
  await database.query("select graphile_worker.worker_heartbeat('slow', '{\"migration\": 6}')");
  await database.query(`select graphile_worker.worker_heartbeat('knows', '{"migration": ${future}}')`);
  await database.query("select graphile_worker.worker_heartbeat('of the Rust port', '{\"pid\": 1}')");
  const { isClear, messages } = await wait(database, 0);
  expect(isClear).toBe(false);
  expect(messages.at(-1)).toMatch(/have not gone in time; going on: slow$/);
});

test("a worker that has been silent for long is not waited for", async () => {
  const database = await freshDatabase();
  await database.query("select graphile_worker.worker_heartbeat('dead', '{\"migration\": 6}')");
  await database.query("update graphile_worker._private_workers set last_heartbeat_at = now() - interval '6 minutes'");
  expect(await wait(database, 30_000)).toEqual({ isClear: true, messages: [] });
});

test("only migrations that say so are breaking, and only while they are pending", async () => {
  const database = await freshDatabase();
  const client = await database.pool.connect();
  onTestFinished(() => client.release());
  const state = await examineSchema(client, database.schema);
  const breaking = readMigration("000998-rename.sql", "-- breaking: renames a column\nselect 1;");
  const harmless = readMigration("000999-index.sql", "-- adds an index\nselect 1;");
  expect(pendingBreak(state)).toBeUndefined();
  expect(pendingBreak(state, [...shippedMigrations(), breaking, harmless])).toBe(998);
  expect(pendingBreak({ ...state, ours: [...(state.ours ?? []), 998] }, [breaking, harmless])).toBeUndefined();
});
