import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import amqp from "amqplib";
import { Queue } from "bullmq";
import { until } from "../support/wait.ts";
import { type AtEnd, type Server, startKafka, startNats, startRabbit, startRedis } from "./servers.ts";

/** A message that has arrived. */
export interface Received {
  readonly id: string;
  readonly body: { readonly n: number };
  readonly headers: Readonly<Record<string, string>>;
  /** What orders it, where that is not a header. */
  readonly key?: string;
}

export interface Broker {
  readonly name: string;
  readonly program: string;
  start(atEnd: AtEnd): Promise<Server>;
  /** Makes what the messages go to. */
  prepare(port: number): Promise<void>;
  /** Everything that has arrived. */
  receive(port: number): Promise<Received[]>;
  /** Milliseconds between the kills of the broker; it is not killed without. */
  readonly killsEveryMs?: number;
  /** Copies within a run are dropped by the broker. */
  readonly drops: boolean;
}

export const tasks = ["mail/welcome", "mail/digest"];

export const brokers: readonly Broker[] = [
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
          const headers = Object.fromEntries(message.headers!.keys().map((name) => [name, message.headers!.get(name)]));
          received.push({ id: headers["Nats-Msg-Id"]!, body: message.json(), headers });
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
          (message) => {
            const { messageId: id, headers = {} } = message!.properties;
            received.push({ id, body: JSON.parse(message!.content.toString()), headers });
          },
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
    // It reads all of its data when it starts, and its client then waits a second.
    killsEveryMs: 10_000,
    prepare: async () => undefined,
    async receive(port) {
      const queue = new Queue("mail", { connection: { host: "127.0.0.1", port } });
      const received: Received[] = [];
      for (;;) {
        const page = await queue.getWaiting(received.length, received.length + 4_999);
        if (page.length === 0) break;
        for (const { id, data, opts } of page) {
          const { hathi } = opts as { hathi: Record<string, string> };
          received.push({ id: id!, body: data, headers: hathi });
        }
      }
      await queue.close();
      return received;
    },
  },
  {
    name: "kafka",
    program: "kcat",
    start: (atEnd) => startKafka("mail", atEnd),
    drops: false,
    prepare: async () => undefined,
    async receive(port) {
      // A consumer of a group would wait for others to join first.
      const args = [
        "-C",
        "-q",
        "-e",
        "-b",
        `127.0.0.1:${port}`,
        "-t",
        "mail",
        "-o",
        "beginning",
        "-f",
        "%h\\t%k\\t%s\\n",
      ];
      const { stdout } = await promisify(execFile)("kcat", args, { maxBuffer: 2 ** 30, timeout: 120_000 });
      return stdout
        .trimEnd()
        .split("\n")
        .map((line) => {
          const [list = "", key = "", body = ""] = line.split("\t");
          const headers = Object.fromEntries(list.split(",").map((header) => header.split("=", 2)));
          return { id: headers["hathi-id"] ?? "", body: JSON.parse(body), headers, key };
        });
    },
  },
];
