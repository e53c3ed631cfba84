import { randomBytes } from "node:crypto";
import type { PoolClient, QueryConfig } from "pg";
import { expect, test } from "vitest";
import { runOnce } from "../../src/runner/run.ts";
import { runTaskListOnce } from "../../src/runner/run-task-list.ts";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";
import { startWorker } from "./kit.ts";

/** Of every way in which PostgreSQL keeps a value: in its row, compressed in its row, aside, and compressed aside. */
const payloads: readonly unknown[] = [
  { small: "x" },
  { inRow: randomBytes(700).toString("hex") },
  { compressed: "x".repeat(100_000) },
  { aside: randomBytes(30_000).toString("base64") },
  null,
  { compressedAside: Array.from({ length: 20_000 }, (_, n) => ({ n, text: `ünï “${n}” \\ \n` })) },
  { small: "y" },
];

async function addAll(db: TestDatabase, queueName?: string): Promise<void> {
  for (const payload of payloads) {
    await db.query("select graphile_worker.add_job('t', $1::json, queue_name => $2)", [
      JSON.stringify(payload),
      queueName ?? null,
    ]);
  }
}

test.each([undefined, "q"])("payloads of every size arrive whole and in order (queue: %s)", async (queueName) => {
  const db = await freshDatabase();
  await addAll(db, queueName);
  const arrived: unknown[] = [];
  await runOnce({
    noHandleSignals: true,
    connectionString: db.url,
    taskList: { t: (payload) => void arrived.push(payload) },
  });
  expect(arrived).toEqual(payloads);
  expect(await db.jobs()).toEqual([]);
});

test("payloads of every size arrive on a single client", async () => {
  const db = await freshDatabase();
  await addAll(db);
  const arrived: unknown[] = [];
  const client = await testPool(db.url, 1).connect();
  await runTaskListOnce({ noHandleSignals: true }, { t: (payload) => void arrived.push(payload) }, client);
  client.release();
  expect(arrived).toEqual(payloads);
});

test("jobs whose large payload cannot be read because the connection breaks are given back and run", async () => {
  const db = await freshDatabase();
  await addAll(db, "q");
  const pgPool = testPool(db.url, 4);
  let breaks = 0;
  pgPool.on("connect", (client) => {
    const query = client.query.bind(client) as (config: QueryConfig, ...rest: unknown[]) => unknown;
    client.query = ((config: QueryConfig, ...rest: unknown[]) => {
      const isRead = config.name?.startsWith("read_payloads") ?? false;
      return query(
        isRead && breaks++ === 0 ? { text: "select pg_terminate_backend(pg_backend_pid())" } : config,
        ...rest,
      );
    }) as PoolClient["query"];
  });
  const arrived: unknown[] = [];
  const { runner, completed, lines } = await startWorker(
    db,
    { t: (payload) => void arrived.push(payload) },
    { pgPool },
  );
  await completed(payloads.length);
  await runner.stop();
  expect(breaks).toBeGreaterThan(1);
  expect(arrived).toEqual(payloads);
  expect(lines.filter(({ level }) => level === "error")).toHaveLength(1);
});
