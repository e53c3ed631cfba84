import type { ForwardMessage } from "./message.ts";
import { acked, forAll, resultOf, type Target } from "./target.ts";

interface KafkaRecord {
  readonly key?: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The part of a producer that is used: of `kafkajs` and its like (`sendBatch`), or of `@platformatic/kafka` with string serializers (`send`). */
export type KafkaProducer =
  | {
      sendBatch(batch: { acks: number; topicMessages: { topic: string; messages: KafkaRecord[] }[] }): Promise<unknown>;
    }
  | { send(batch: { acks: number; messages: (KafkaRecord & { topic: string })[] }): Promise<unknown> };

export interface KafkaOptions {
  /** A connected producer. */
  readonly producer: KafkaProducer;
  /** The topic, or a function that chooses one for each message. */
  readonly topic: string | ((message: ForwardMessage) => string);
}

/** Kafka: each batch is confirmed by all replicas in sync. A batch that was not confirmed is sent again; consumers know copies by the header `hathi-id`. */
export function kafka({ producer, topic }: KafkaOptions): Target {
  const topicOf = typeof topic === "function" ? topic : () => topic;
  return {
    name: "Kafka",
    async publish(batch) {
      const records = batch.map((message) => ({ topic: topicOf(message), ...toRecord(message) }));
      try {
        if ("sendBatch" in producer) await producer.sendBatch({ acks: -1, topicMessages: byTopic(records) });
        else await producer.send({ acks: -1, messages: records });
        return forAll(batch, acked);
      } catch (error) {
        return batch.length === 1 && isTooLarge(error)
          ? [resultOf("reject", error)]
          : forAll(batch, resultOf(isTooLarge(error) ? "retry" : "absent", error));
      }
    },
  };
}

function toRecord({ id, body, headers, key }: ForwardMessage): KafkaRecord {
  return { ...(key !== undefined && { key }), value: body, headers: { "hathi-id": id, ...headers } };
}

function byTopic(records: readonly (KafkaRecord & { topic: string })[]): { topic: string; messages: KafkaRecord[] }[] {
  const messagesByTopic = new Map<string, KafkaRecord[]>();
  for (const { topic, ...record } of records) {
    const messages = messagesByTopic.get(topic);
    if (messages) messages.push(record);
    else messagesByTopic.set(topic, [record]);
  }
  return [...messagesByTopic].map(([topic, messages]) => ({ topic, messages }));
}

function isTooLarge(error: unknown): boolean {
  const { type, message } = error as { type?: unknown; message?: unknown };
  return type === "MESSAGE_TOO_LARGE" || (typeof message === "string" && /too large/i.test(message));
}
