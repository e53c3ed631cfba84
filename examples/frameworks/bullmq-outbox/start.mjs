// Jobs that commit with your rows and are then forwarded to BullMQ.
import { once } from "node:events";
import { Queue, Worker } from "bullmq";
import { makeWorkerUtils, run } from "hathi";
import { bullmq, forward } from "hathi/forward";
import pg from "pg";
import { openDatabase } from "../../database.mjs";
import { openRedis } from "./redis.mjs";

const redis = await openRedis();
if (!redis) {
  console.error("There is no redis-server here: install it (Debian: apt-get install redis-server), or set REDIS_URL.");
  process.exit(1);
}
const connection = { url: redis.url, maxRetriesPerRequest: null };
const mails = new Queue("mails", { connection });
const consumer = new Worker("mails", async () => undefined, { connection });
const completed = once(consumer, "completed");

const database = await openDatabase();
const { connectionString } = database;
const utils = await makeWorkerUtils({ connectionString });
const runner = await run({
  connectionString,
  noHandleSignals: true,
  taskList: {},
  forward: [forward({ tasks: ["mail/*"], to: bullmq({ queue: mails }) })],
});

const client = new pg.Client({ connectionString });
await client.connect();
const outbox = utils.withTransaction(client);
await client.query("begin");
await outbox.addJob("mail/welcome", { to: "nobody@example.com" });
await client.query("rollback");
await client.query("begin");
await outbox.addJob("mail/welcome", { to: "ada@example.com" });
await client.query("commit");

const [{ id, name, data }] = await completed;
console.log(`BullMQ runs ${id}: ${name} ${JSON.stringify(data)}`);

await client.end();
await runner.stop();
await utils.release();
await consumer.close();
console.log(`BullMQ got ${await countAll(mails)} job in all`);
await mails.close();
await database.stop();
await redis.stop();

async function countAll(queue) {
  const counts = await queue.getJobCounts();
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
