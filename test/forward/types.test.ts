import type { JetStreamClient } from "@nats-io/jetstream";
import type { Producer as PlatformaticProducer } from "@platformatic/kafka";
import type { ConfirmChannel } from "amqplib";
import type { Queue } from "bullmq";
import type { Producer } from "kafkajs";
import { expectTypeOf, test } from "vitest";
import type { BullQueue, KafkaProducer, NatsClient, RabbitChannel } from "../../src/forward/index.ts";

test("the clients of the brokers fit by their own types", () => {
  expectTypeOf<JetStreamClient>().toExtend<NatsClient>();
  expectTypeOf<ConfirmChannel>().toExtend<RabbitChannel>();
  expectTypeOf<Queue>().toExtend<BullQueue>();
  expectTypeOf<Queue<{ to: string }>>().toExtend<BullQueue>();
  expectTypeOf<Producer>().toExtend<KafkaProducer>();
  expectTypeOf<PlatformaticProducer<string, string, string, string>>().toExtend<KafkaProducer>();
});
