import { inspect } from "node:util";
import { ConfigError } from "../errors.ts";
import { publishMade } from "./batch.ts";
import type { ForwardMessage } from "./message.ts";
import { natsHeaders } from "./nats-headers.ts";
import { type NatsConnection, NatsLine, type NatsPost } from "./nats-line.ts";
import { acked, type PublishResult, resultOf, type Target } from "./target.ts";

/** The part of a `JetStreamClient` of `@nats-io/jetstream` that is used. */
export interface NatsClient {
  jetstreamManager(checkAPI?: boolean): Promise<{ streams: { find(subject: string): Promise<string> } }>;
}

export interface NatsOptions {
  /** What `jetstream(connection)` gives. */
  readonly client: NatsClient;
  /** The subject, or a function that chooses one for each message. */
  readonly subject: string | ((message: ForwardMessage) => string);
  /** Milliseconds to wait for the confirmation of a message; the client's own, if left out. */
  readonly timeout?: number;
}

/** No stream answered. */
const unheard: PublishResult = { outcome: "absent", reason: "no stream answers" };
const noResponders = 503;
const tooLargeForStream = 10054;

/** NATS JetStream: each message is confirmed by its stream, which drops copies (by their id) within its duplicate window. */
export function nats({ client, subject, timeout }: NatsOptions): Target {
  const subjectOf = typeof subject === "function" ? subject : () => subject;
  const { nc, timeout: ownTimeout } = client as { nc?: NatsConnection; timeout?: number };
  if (typeof nc?.publish !== "function" || typeof nc.subscribe !== "function") {
    throw new ConfigError(
      `'client' of nats() must be what jetstream(connection) gives, got ${inspect(client, { depth: 0 })}.`,
    );
  }
  const line = new NatsLine(nc, readAnswer, timeout ?? ownTimeout ?? 5_000);
  const send = async (posts: readonly NatsPost[]): Promise<PublishResult[]> => {
    const { results, reason } = await line.publish(posts, judgeThrown);
    const given = results.map((result) => result ?? resultOf("absent", reason));
    if (!given.includes(unheard)) return given;
    const unheardOf = new Set(posts.filter((_, n) => given[n] === unheard).map((post) => post.subject));
    const missing = (await line.orLost(findMissing(client, unheardOf))) ?? new Map<string, PublishResult>();
    return given.map((result, n) => (result === unheard ? (missing.get(posts[n]!.subject) ?? unheard) : result));
  };
  const toPost = (message: ForwardMessage): NatsPost => ({
    subject: subjectOf(message),
    body: message.body,
    headers: natsHeaders(message.id, message.headers),
  });
  return { name: "NATS", publish: (batch) => publishMade(batch, toPost, send) };
}

/** What a stream, or the server, says of a message. */
function readAnswer(text: string, status: number | undefined): PublishResult {
  if (status === noResponders) return unheard;
  const { stream, error } = parse(text);
  if (error) return resultOf(error.err_code === tooLargeForStream ? "reject" : "retry", error.description ?? text);
  return stream ? acked : resultOf("absent", `not an answer of a stream: ${text}`);
}

function parse(text: string): { stream?: string; error?: { err_code?: number; description?: string } } {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** What the client throws instead of sending a message. */
function judgeThrown(error: unknown): PublishResult {
  const { name = "" } = error as { name?: string };
  // A subject that cannot be, or a message that is too large for the server.
  return resultOf(name === "InvalidSubjectError" || name === "InvalidArgumentError" ? "reject" : "absent", error);
}

/** Of subjects that nothing listens to, those that no stream takes, as JetStream says itself; otherwise it is not up yet. */
async function findMissing(client: NatsClient, subjects: ReadonlySet<string>): Promise<Map<string, PublishResult>> {
  const missing = new Map<string, PublishResult>();
  const look = async (subject: string): Promise<void> => {
    try {
      const manager = await client.jetstreamManager(false);
      await manager.streams.find(subject);
    } catch (error) {
      const { name, message } = error as Error;
      const isNone = name === "StreamNotFoundError" || /no stream matches subject/i.test(message);
      if (isNone) missing.set(subject, resultOf("reject", `no stream takes the subject '${subject}'`));
    }
  };
  await Promise.all([...subjects].map(look));
  return missing;
}
