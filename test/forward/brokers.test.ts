import { fileURLToPath } from "node:url";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import amqp from "amqplib";
import { Queue } from "bullmq";
import { Kafka, logLevel } from "kafkajs";
import { describe, expect, onTestFinished, test } from "vitest";
import { sleep } from "../../src/util/sleep.ts";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { dice } from "../support/dice.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { isInstalled, type Server, startKafka, startNats, startRabbit, startRedis } from "./servers.ts";

/** `HATHI_FORWARD_JOBS=100000` for the large run. */
const count = Number(process.env.HATHI_FORWARD_JOBS ?? 2_000);
const seed = Number(process.env.HATHI_SEED ?? Date.now() % 1_000_000);
const isLarge = count > 10_000;

interface Received {
  readonly id: string;
  readonly body: unknown;
}

interface Broker {
  readonly name: string;
  readonly program: string;
  start(): Promise<Server>;
  /** Makes what the messages go to. */
  prepare(port: number): Promise<void>;
  /** Everything that has arrived. */
  receive(port: number): Promise<Received[]>;
  /** Milliseconds between the kills of the broker; it is not killed without. */
  readonly killsEveryMs?: number;
  /** Copies within a run are dropped by the broker. */
  readonly drops: boolean;
}

const tasks = ["mail/welcome", "mail/digest"];

const brokers: readonly Broker[] = [
  {
    name: "nats",
    program: "nats-server",
    start: startNats,
    drops: true,
    killsEveryMs: 2_000,
    async prepare(port) {
      const connection = await connect({ servers: `127.0.0.1:${port}` });
      const manager = await jetstreamManager(connection);
      await manager.streams.add({ name: "MAIL", subjects: ["mail.>"], duplicate_window: 600e9 });
      await connection.close();
    },
    async receive(port) {
      const connection = await connect({ servers: `127.0.0.1:${port}` });
      const manager = await jetstreamManager(connection);
      await manager.consumers.add("MAIL", { durable_name: "all", ack_policy: "none" as never });
      const consumer = await jetstream(connection).consumers.get("MAIL", "all");
      const { state } = await manager.streams.info("MAIL");
      const received: Received[] = [];
      while (received.length < state.messages) {
        for await (const message of await consumer.fetch({ max_messages: 5_000, expires: 5_000 })) {
          received.push({ id: message.headers!.get("Nats-Msg-Id"), body: message.json() });
          if (received.length >= state.messages) break;
        }
      }
      await connection.close();
      return received;
    },
  },
  {
    name: "rabbitmq",
    program: "rabbitmq-server",
    start: startRabbit,
    drops: false,
    killsEveryMs: 15_000,
    async prepare(port) {
      const connection = await amqp.connect(`amqp://127.0.0.1:${port}`);
      const channel = await connection.createChannel();
      for (const task of tasks) await channel.assertQueue(task, { durable: true });
      await connection.close();
    },
    async receive(port) {
      const connection = await amqp.connect(`amqp://127.0.0.1:${port}`);
      const channel = await connection.createChannel();
      const received: Received[] = [];
      for (const task of tasks) {
        const { messageCount } = await channel.checkQueue(task);
        const before = received.length;
        await channel.consume(
          task,
          (message) =>
            received.push({ id: message!.properties.messageId, body: JSON.parse(message!.content.toString()) }),
          { noAck: true },
        );
        await until(() => received.length >= before + messageCount, { withinMs: 60_000 });
      }
      await connection.close();
      return received;
    },
  },
  {
    name: "bullmq",
    program: "redis-server",
    start: startRedis,
    drops: true,
    killsEveryMs: 2_000,
    prepare: async () => undefined,
    async receive(port) {
      const queue = new Queue("mail", { connection: { host: "127.0.0.1", port } });
      const received: Received[] = [];
      for (;;) {
        const page = await queue.getWaiting(received.length, received.length + 4_999);
        if (page.length === 0) break;
        for (const job of page) received.push({ id: job.id!, body: job.data });
      }
      await queue.close();
      return received;
    },
  },
  {
    name: "kafka",
    program: "kcat",
    start: () => startKafka("mail"),
    drops: false,
    prepare: async () => undefined,
    async receive(port) {
      const client = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING });
      const admin = client.admin();
      await admin.connect();
      const offsets = await admin.fetchTopicOffsets("mail");
      await admin.disconnect();
      const total = offsets.reduce((sum, { high, low }) => sum + Number(high) - Number(low), 0);
      const consumer = client.consumer({ groupId: "all" });
      const received: Received[] = [];
      await consumer.connect();
      await consumer.subscribe({ topic: "mail", fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message }) => {
          received.push({ id: String(message.headers?.["hathi-id"]), body: JSON.parse(String(message.value)) });
        },
      });
      await until(() => received.length >= total, { withinMs: 60_000 });
      await consumer.disconnect();
      return received;
    },
  },
];

async function startForwarder(db: TestDatabase, broker: string, port: number): Promise<TestProcess> {
  const recovery = {
    heartbeatInterval: 300,
    sweepInterval: 500,
    sweepThreshold: 4_000,
    recoveryDelay: 0,
    crashGrace: 1_000,
  };
  const options = {
    connectionString: db.url,
    library: builtLibrary(),
    broker,
    port,
    pollInterval: 200,
    recovery,
    maxInFlight: isLarge ? 500 : 50,
  };
  const child = startProcess(fileURLToPath(new URL("worker.mjs", import.meta.url)), [JSON.stringify(options)]);
  await child.says(/^ready$/m);
  return child;
}

describe.each(brokers.filter(({ program }) => isInstalled(program)))(
  "$name",
  ({ name, start, prepare, receive, killsEveryMs, drops }) => {
    test(
      `gets each of ${count} jobs, whoever is killed, and copies have the same id`,
      async () => {
        const roll = dice(seed);
        const db = await freshDatabase();
        const server = await start();
        await prepare(server.port);
        await db.query(
          `select count(*) from graphile_worker.add_jobs(array(
           select (($2::text[])[1 + nth % 2], json_build_object('n', nth), case when nth % 20 = 0 then 'queue ' || nth % 7 end,
             null, 100, null, 0, null)::graphile_worker.job_spec
           from generate_series(1, $1::integer) as nth))`,
          [count, tasks],
        );
        const added = await db.query<{ id: string; n: string }>(
          "select id, payload ->> 'n' as n from graphile_worker._private_jobs",
        );
        const startedAt = Date.now();
        const workers = [await startForwarder(db, name, server.port), await startForwarder(db, name, server.port)];
        let isOver = false;
        const blows = { workers: 0, broker: 0 };
        const killWorkers = async () => {
          while (!isOver) {
            await sleep(300 + roll() * 2_000);
            const index = Math.floor(roll() * workers.length);
            workers[index]!.kill("SIGKILL");
            blows.workers++;
            workers[index] = await startForwarder(db, name, server.port);
          }
        };
        const killBroker = async () => {
          // In the small run one restart of RabbitMQ takes longer than everything else.
          while (!isOver && killsEveryMs !== undefined && (isLarge || name !== "rabbitmq" || blows.broker === 0)) {
            await sleep((0.2 + roll()) * (blows.broker === 0 ? 300 : killsEveryMs));
            if (isOver) return;
            await server.kill();
            blows.broker++;
            await sleep(roll() * 500);
            await server.start();
          }
        };
        const trouble = Promise.all([killWorkers(), killBroker()]);
        await until(async () => (await db.query("select 1 from graphile_worker._private_jobs limit 1")).length === 0, {
          withinMs: isLarge ? 1_500_000 : 150_000,
          what: `all jobs are forwarded (seed ${seed}): ${workers.map((worker) => worker.output().slice(-500)).join("\n")}`,
        });
        isOver = true;
        const seconds = (Date.now() - startedAt) / 1000;
        await trouble;
        const received = await receive(server.port);
        const bodyById = new Map<string, string>();
        for (const { id, body } of received) {
          const text = JSON.stringify(body);
          expect(bodyById.get(id) ?? text).toBe(text);
          bodyById.set(id, text);
        }
        console.log(
          `${name}, seed ${seed}: ${count} jobs in ${seconds} s, ${received.length - bodyById.size} copies,`,
          blows,
        );
        expect(bodyById.size).toBe(count);
        const wrong = added.filter(({ id, n }) => bodyById.get(`hathi-graphile_worker-${id}`) !== `{"n":${n}}`);
        expect(wrong).toEqual([]);
        if (drops) expect(received).toHaveLength(count);
        expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual(
          [],
        );
      },
      isLarge ? 1_800_000 : 240_000,
    );
  },
);

test.each(["nats", "rabbitmq"].filter((name) => isInstalled(`${name}-server`)))(
  "%s: what can never be routed fails permanently",
  async (name) => {
    const db = await freshDatabase();
    const broker = brokers.find((each) => each.name === name)!;
    const server = await broker.start();
    await broker.prepare(server.port);
    if (name === "nats") {
      const connection = await connect({ servers: `127.0.0.1:${server.port}` });
      await (await jetstreamManager(connection)).streams.update("MAIL", { subjects: ["mail.welcome"] });
      await connection.close();
    }
    const nowhere = name === "nats" ? "mail/digest" : "mail/unknown";
    await db.query("select graphile_worker.add_job('mail/welcome', '{}'), graphile_worker.add_job($1, '{}')", [
      nowhere,
    ]);
    const worker = await startForwarder(db, name, server.port);
    onTestFinished(() => worker.kill("SIGKILL"));
    await until(async () => (await db.jobs()).length === 1);
    await until(async () => (await db.jobs())[0]!.last_error);
    expect(await db.jobs()).toMatchObject([
      { task_identifier: nowhere, attempts: 25, last_error: expect.stringMatching(/no (stream|queue) takes/) },
    ]);
  },
);
