import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { Queue } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { blocksOf, readPage } from "../docs/pages.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase } from "../support/database.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { isInstalled, startNats, startRedis } from "./servers.ts";

/* The programs of docs/forwarding.md, run as they stand against real servers. */

const programs = blocksOf(readPage("docs/forwarding.md")).flatMap(({ language, text }) =>
  language === "ts" ? [text] : [],
);
const programWith = (word: string): string => programs.find((text) => text.includes(word))!;

/** Runs a program of the page beside the brokers' clients, with the built library. */
function start(text: string, databaseUrl: string, port: number): TestProcess {
  const folder = mkdtempSync(fileURLToPath(new URL(".documented-", import.meta.url)));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const library = builtLibrary();
  const file = join(folder, "program.mjs");
  writeFileSync(
    file,
    text
      .replaceAll('"hathi/forward"', JSON.stringify(library.replace(/index\.js$/, "forward/index.js")))
      .replaceAll('"hathi"', JSON.stringify(library))
      .replaceAll(/4222|6379/g, String(port)),
  );
  return startProcess(file, [], { DATABASE_URL: databaseUrl });
}

test.skipIf(!isInstalled("nats-server"))("jobs go to NATS and their deliveries come back", async () => {
  const db = await freshDatabase();
  const server = await startNats();
  const connection = await connect({ servers: `127.0.0.1:${server.port}` });
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "MAIL", subjects: ["mail"] });
  await manager.consumers.add("MAIL", { durable_name: "senders", ack_policy: "explicit" as never });
  await connection.close();
  await db.query(`select graphile_worker.add_job('mail/welcome', '{"to":"Ada"}')`);
  start(programWith("nats({ client"), db.url, server.port);
  start(programWith("consumers.get"), db.url, server.port);
  const jobs = await until(async () => {
    const found = await db.jobs();
    return found.some(({ task_identifier }) => task_identifier === "delivered") && found.length === 1
      ? found
      : undefined;
  });
  const id = "hathi-graphile_worker-1";
  expect(jobs).toMatchObject([
    { task_identifier: "delivered", key: `sent:${id}`, payload: { id, mail: { to: "Ada" } } },
  ]);
});

test.skipIf(!isInstalled("redis-server"))(
  "a question goes to BullMQ, and its answer to the one who waits",
  async () => {
    const db = await freshDatabase();
    const server = await startRedis();
    const program = start(programWith("utils.waitForJob"), db.url, server.port);
    await program.says(/\{ price: 42 \}/);
  },
);

test.skipIf(!isInstalled("redis-server"))("deliveries of BullMQ come back", async () => {
  const db = await freshDatabase();
  const server = await startRedis();
  const queue = new Queue("mail", { connection: { host: "127.0.0.1", port: server.port } });
  onTestFinished(() => queue.close());
  await queue.add("mail/welcome", { to: "Ada" }, { jobId: "hathi-graphile_worker-1" });
  start(programWith('new Worker(\n  "mail"'), db.url, server.port);
  const [job] = await until(async () => ((await db.jobs()).length > 0 ? db.jobs() : undefined));
  expect(job).toMatchObject({
    task_identifier: "delivered",
    payload: { id: "hathi-graphile_worker-1", mail: { to: "Ada" } },
  });
});
