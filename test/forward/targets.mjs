// How an application would connect to each broker, so that it survives the broker's restarts.
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import amqp from "amqplib";
import { Queue } from "bullmq";
import { Kafka, logLevel } from "kafkajs";

/** `choose` replaces the function that says where a message goes, or with which options. */
export async function connectTarget({ nats, rabbitmq, bullmq, kafka }, broker, port, choose) {
  switch (broker) {
    case "nats": {
      const connection = await connect({
        servers: `127.0.0.1:${port}`,
        maxReconnectAttempts: -1,
        reconnectTimeWait: 100,
        waitOnFirstConnect: true,
        // 20 s otherwise, for which a client that connects while the server dies may stand still.
        timeout: 2_000,
      });
      return nats({
        client: jetstream(connection, { timeout: 2_000 }),
        subject: choose ?? (({ task }) => task.replaceAll("/", ".")),
      });
    }
    case "rabbitmq": {
      const channel = async () => {
        const connection = await amqp.connect(`amqp://127.0.0.1:${port}`);
        connection.on("error", () => undefined);
        return connection.createConfirmChannel();
      };
      return rabbitmq({ channel, ...(choose && { routingKey: choose }) });
    }
    case "bullmq": {
      const queue = new Queue("mail", {
        // 1 to 20 s otherwise.
        connection: { host: "127.0.0.1", port, retryStrategy: () => 100 },
      });
      queue.on("error", () => undefined);
      return bullmq({ queue, ...(choose && { jobOptions: choose }) });
    }
    case "kafka": {
      const client = new Kafka({ brokers: [`127.0.0.1:${port}`], logLevel: logLevel.NOTHING });
      const producer = client.producer();
      await producer.connect();
      return kafka({ producer, topic: choose ?? "mail" });
    }
    case "platformatic": {
      // Not above: it does not load on Node 20.
      const { Producer, stringSerializers } = await import("@platformatic/kafka");
      const bootstrapBrokers = [`127.0.0.1:${port}`];
      const producer = new Producer({ clientId: "hathi", bootstrapBrokers, serializers: stringSerializers });
      return kafka({ producer, topic: "mail" });
    }
    default:
      throw new Error(`Unknown broker '${broker}'.`);
  }
}
