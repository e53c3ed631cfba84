import type { ForwardMessage } from "./message.ts";
import { NatsHeaders } from "./nats-headers.ts";
import { acked, type PublishResult, resultOf, type Target } from "./target.ts";

/** The part of a `JetStreamClient` of `@nats-io/jetstream` that is used. */
export interface NatsClient {
  publish(
    subject: string,
    data: string,
    options: { msgID: string; headers: never; timeout?: number },
  ): Promise<unknown>;
  jetstreamManager?(): Promise<{ streams: { find(subject: string): Promise<string> } }>;
}

export interface NatsOptions {
  /** What `jetstream(connection)` gives. */
  readonly client: NatsClient;
  /** The subject, or a function that chooses one for each message. */
  readonly subject: string | ((message: ForwardMessage) => string);
  /** Milliseconds to wait for the confirmation of a message; the client's own, if left out. */
  readonly timeout?: number;
}

/** NATS JetStream: each message is confirmed by its stream, which drops copies (by their id) within its duplicate window. */
export function nats({ client, subject, timeout }: NatsOptions): Target {
  const subjectOf = typeof subject === "function" ? subject : () => subject;
  const publishOne = async (message: ForwardMessage): Promise<PublishResult> => {
    const to = subjectOf(message);
    try {
      await client.publish(to, message.body, {
        msgID: message.id,
        headers: new NatsHeaders(message.headers) as never,
        ...(timeout !== undefined && { timeout }),
      });
      return acked;
    } catch (error) {
      return await judge(client, to, error);
    }
  };
  return { name: "NATS", publish: (batch) => Promise.all(batch.map(publishOne)) };
}

/** What an error says of the message. */
async function judge(client: NatsClient, subject: string, error: unknown): Promise<PublishResult> {
  const { name = "", code } = error as { name?: string; code?: unknown };
  if (name === "InvalidSubjectError") return resultOf("reject", error);
  // Too large for the server, or for the stream.
  if (name === "InvalidArgumentError" || code === 10054) return resultOf("reject", error);
  // An answer of the stream: it is full, say, or sealed.
  if (name === "JetStreamApiError") return resultOf("retry", error);
  if (name === "JetStreamNotEnabled" || name === "NoRespondersError") return await judgeUnheard(client, subject, error);
  return resultOf("absent", error);
}

/** Nothing listens: no stream takes the subject, if JetStream says so itself; else it is not up yet. */
async function judgeUnheard(client: NatsClient, subject: string, error: unknown): Promise<PublishResult> {
  try {
    const manager = await client.jetstreamManager?.();
    await manager?.streams.find(subject);
    return resultOf("absent", error);
  } catch (found) {
    const { name, message } = found as Error;
    const isNone = name === "StreamNotFoundError" || /no stream matches subject/i.test(message);
    return isNone ? resultOf("reject", `no stream takes the subject '${subject}'`) : resultOf("absent", error);
  }
}
