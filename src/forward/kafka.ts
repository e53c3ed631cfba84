import { isolate, publishMade } from "./batch.ts";
import type { ForwardMessage } from "./message.ts";
import { type PublishResult, resultOf, type Target } from "./target.ts";

interface KafkaRecord {
  readonly key?: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

type TopicRecord = KafkaRecord & { readonly topic: string };

/** The part of a producer that is used: of `kafkajs` and its like (`sendBatch`), or of `@platformatic/kafka` with string serializers (`send`). */
export type KafkaProducer =
  | {
      sendBatch(batch: { acks: number; topicMessages: { topic: string; messages: KafkaRecord[] }[] }): Promise<unknown>;
    }
  | { send(batch: { acks: number; messages: TopicRecord[] }): Promise<unknown> };

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
    publish: (batch) =>
      publishMade(
        batch,
        (message) => ({ topic: topicOf(message), ...toRecord(message) }),
        (records) => isolate(records, (some) => send(producer, some), judge),
      ),
  };
}

async function send(producer: KafkaProducer, records: readonly TopicRecord[]): Promise<void> {
  if ("sendBatch" in producer) await producer.sendBatch({ acks: -1, topicMessages: byTopic(records) });
  else await producer.send({ acks: -1, messages: [...records] });
}

function toRecord({ id, body, headers, key }: ForwardMessage): KafkaRecord {
  return { ...(key !== undefined && { key }), value: body, headers: { "hathi-id": id, ...headers } };
}

function byTopic(records: readonly TopicRecord[]): { topic: string; messages: KafkaRecord[] }[] {
  const messagesByTopic = new Map<string, KafkaRecord[]>();
  for (const { topic, ...record } of records) {
    const messages = messagesByTopic.get(topic);
    if (messages) messages.push(record);
    else messagesByTopic.set(topic, [record]);
  }
  return [...messagesByTopic].map(([topic, messages]) => ({ topic, messages }));
}

/** What the broker says of a record is an error with a name of the protocol; each client has it in another place. */
const outcomeByError = new Map<string, "retry" | "reject">([
  ["MESSAGE_TOO_LARGE", "reject"],
  ["RECORD_LIST_TOO_LARGE", "reject"],
  ["INVALID_TOPIC_EXCEPTION", "reject"],
  ["TOPIC_AUTHORIZATION_FAILED", "retry"],
  ["UNKNOWN_TOPIC_OR_PARTITION", "retry"],
]);

function judge(error: unknown): PublishResult {
  const known = namesIn(error).find((name) => outcomeByError.has(name));
  return resultOf(known === undefined ? "absent" : outcomeByError.get(known)!, error);
}

function namesIn(error: unknown, depth = 0): string[] {
  if (typeof error !== "object" || error === null || depth > 4) return [];
  const { type, apiId, message, cause, errors } = error as Record<string, unknown>;
  const isTooLarge = typeof message === "string" && /too large/i.test(message);
  const own = [type, apiId, isTooLarge ? "MESSAGE_TOO_LARGE" : undefined].filter((name) => typeof name === "string");
  const inner = [cause, ...(Array.isArray(errors) ? errors : [])];
  return [...own, ...inner.flatMap((each) => namesIn(each, depth + 1))];
}
