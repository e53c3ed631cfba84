import { expect, test } from "vitest";
import { type ForwardMessage, type KafkaProducer, kafka } from "../../src/forward/index.ts";

const message = (n: number, key?: string): ForwardMessage => ({
  ...{ id: `hathi-test-${n}`, task: "mail", payload: {}, body: JSON.stringify({ n }), key, priority: 0, attempt: 1 },
  headers: { "hathi-task": "mail" },
});

/** A producer that answers as brokers do, which librdkafka's mock cannot; `refuse` gives the error of the protocol for a topic and a value. */
function producerOf(kind: "sendBatch" | "send", refuse: (topic: string, value: string) => string | undefined) {
  const taken: { topic: string; key?: string; value: string; headers: object }[] = [];
  const take = (records: typeof taken): void => {
    const error = records.map(({ topic, value }) => refuse(topic, value)).find((name) => name !== undefined);
    if (error === undefined) {
      taken.push(...records);
      return;
    }
    // As kafkajs and @platformatic/kafka wrap it.
    const inner = Object.assign(new Error("said the broker"), kind === "send" ? { apiId: error } : { type: error });
    throw kind === "send"
      ? new AggregateError([inner], "send failed")
      : new Error("retries exceeded", { cause: inner });
  };
  const producer: KafkaProducer =
    kind === "send"
      ? { send: async ({ messages }) => take(messages as typeof taken) }
      : {
          sendBatch: async ({ topicMessages }) =>
            take(topicMessages.flatMap(({ topic, messages }) => messages.map((record) => ({ topic, ...record })))),
        };
  return { producer, taken };
}

test.each(["sendBatch", "send"] as const)(
  "what the broker refuses is found in its batch, and the others are sent (%s)",
  async (kind) => {
    const { producer, taken } = producerOf(kind, (topic, value) => {
      if (topic === "a b") return "INVALID_TOPIC_EXCEPTION";
      if (topic === "unknown") return "UNKNOWN_TOPIC_OR_PARTITION";
      return value === '{"n":5}' ? "MESSAGE_TOO_LARGE" : undefined;
    });
    const topicOf = new Map([
      [2, "a b"],
      [7, "unknown"],
    ]);
    const target = kafka({ producer, topic: ({ body }) => topicOf.get(JSON.parse(body).n) ?? "mail" });
    const batch = Array.from({ length: 10 }, (_, n) => message(n, n === 1 ? "tenant" : undefined));
    const outcomes = (await target.publish(batch)).map((result) => (result as { outcome: string }).outcome);
    expect(outcomes).toEqual(
      Array.from({ length: 10 }, (_, n) => (n === 2 || n === 5 ? "reject" : n === 7 ? "retry" : "acked")),
    );
    expect(taken.map(({ value }) => JSON.parse(value).n)).toEqual([0, 1, 3, 4, 6, 8, 9]);
    expect(taken[1]).toEqual({
      topic: "mail",
      key: "tenant",
      value: '{"n":1}',
      headers: { "hathi-id": "hathi-test-1", "hathi-task": "mail" },
    });
    expect(taken[0]).not.toHaveProperty("key");
  },
);

test("a broker that cannot be reached is not asked for each half of a batch", async () => {
  let calls = 0;
  const producer: KafkaProducer = {
    send: async () => {
      calls++;
      throw Object.assign(new Error("connect ECONNREFUSED"), { code: "PLT_KFK_NETWORK" });
    },
  };
  const results = await kafka({ producer, topic: "mail" }).publish([message(1), message(2)]);
  expect(results).toMatchObject([{ outcome: "absent" }, { outcome: "absent" }]);
  expect(calls).toBe(1);
});
