import { type JetStreamClient, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { type ForwardMessage, nats, type PublishResult, type Target } from "../../src/forward/index.ts";
import { until } from "../support/wait.ts";
import { isInstalled, type Server, startNats } from "./servers.ts";

/** So long that a test which waits for it fails. */
const never = 3_600_000;

function messages(count: number, body = '{"to":"Ada"}'): ForwardMessage[] {
  return Array.from({ length: count }, (_, n) => ({
    ...{ id: `hathi-test-${n}`, task: "mail", payload: {}, body, key: undefined, priority: 0, attempt: 1 },
    headers: { "hathi-task": "mail", "hathi-job-id": String(n) },
  }));
}

async function open(): Promise<{ server: Server; connection: NatsConnection; client: JetStreamClient }> {
  const server = await startNats();
  const connection = await connect({
    servers: `127.0.0.1:${server.port}`,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 20,
  });
  onTestFinished(() => connection.close());
  const manager = await jetstreamManager(connection);
  await manager.streams.add({ name: "MAIL", subjects: ["mail"], max_msg_size: 1_000 });
  return { server, connection, client: jetstream(connection, { timeout: never }) };
}

const publish = async (target: Target, batch: readonly ForwardMessage[]) =>
  (await target.publish(batch)) as PublishResult[];
const outcomes = (results: readonly PublishResult[]) => [...new Set(results.map(({ outcome }) => outcome))];

describe.runIf(isInstalled("nats-server"))("NATS", () => {
  test("messages on their way when the connection is lost are sent again without waiting for their timeout", async () => {
    const { server, connection, client } = await open();
    const target = nats({ client, subject: "mail" });
    expect(outcomes(await publish(target, messages(3)))).toEqual(["acked"]);
    for (let round = 0; round < 3; round++) {
      const batch = messages(100);
      server.freeze();
      const underWay = publish(target, batch);
      await server.kill();
      expect(outcomes(await underWay)).toEqual(["absent"]);
      // Nothing is handed to the client meanwhile: it would drop it when it connects again, and its answer would never come.
      expect(outcomes(await publish(target, batch))).toEqual(["absent"]);
      await server.start();
      await until(async () => outcomes(await publish(target, batch))[0] === "acked", { what: "it is taken again" });
    }
    const { state } = await (await jetstreamManager(connection)).streams.info("MAIL");
    expect(state.messages).toBe(100);
  });

  test("a question about streams ends when the connection is lost", async () => {
    const { server, client } = await open();
    let asked = 0;
    const unanswered = Object.assign(Object.create(client), {
      jetstreamManager: () => {
        asked++;
        return new Promise(() => undefined);
      },
    });
    const underWay = publish(nats({ client: unanswered, subject: "nowhere" }), messages(50));
    await until(() => asked > 0, { what: "it asks which stream takes the subject" });
    await server.kill();
    expect(outcomes(await underWay)).toEqual(["absent"]);
    expect(asked).toBe(1);
  });

  test("each message has the outcome that the stream gives it", async () => {
    const { client } = await open();
    const [fits, large, elsewhere, invalid] = messages(4);
    const subjects = new Map([
      [elsewhere!.id, "nowhere"],
      [invalid!.id, "not a subject"],
    ]);
    const target = nats({ client, subject: ({ id }) => subjects.get(id) ?? "mail" });
    const results = await publish(target, [
      fits!,
      { ...large!, body: JSON.stringify("x".repeat(2_000)) },
      elsewhere!,
      invalid!,
    ]);
    expect(results).toMatchObject([
      { outcome: "acked" },
      { outcome: "reject", reason: expect.stringContaining("size") },
      { outcome: "reject", reason: "no stream takes the subject 'nowhere'" },
      { outcome: "reject" },
    ]);
  });

  test("a stream that is full refuses messages for now", async () => {
    const { connection, client } = await open();
    const manager = await jetstreamManager(connection);
    await manager.streams.update("MAIL", { max_msgs: 2, discard: "new" as never });
    const results = await publish(nats({ client, subject: "mail" }), messages(4));
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(["acked", "acked", "retry", "retry"]);
  });

  test("what is not a client of JetStream is refused at once", () => {
    expect(() => nats({ client: {} as never, subject: "mail" })).toThrow(/must be what jetstream\(connection\) gives/);
  });
});
