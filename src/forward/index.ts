export { type BullOptions, type BullQueue, bullmq } from "./bullmq.ts";
export { type ForwardOptions, forward } from "./forward.ts";
export { type KafkaOptions, type KafkaProducer, kafka } from "./kafka.ts";
export type { ForwardMessage } from "./message.ts";
export { type NatsClient, type NatsOptions, nats } from "./nats.ts";
export { type RabbitChannel, type RabbitOptions, rabbitmq } from "./rabbitmq.ts";
export type { Publish, PublishOutcome, PublishResult, Target } from "./target.ts";
