import { randomUUID } from "node:crypto";
import { deferred } from "../util/deferred.ts";
import { clearTimeout, setTimeout } from "../util/timers.ts";
import type { NatsHeaders } from "./nats-headers.ts";
import type { PublishResult } from "./target.ts";

/** What arrives on a subscription. */
interface NatsAnswer {
  readonly subject: string;
  readonly headers?: { readonly code?: number } | undefined;
  string(): string;
}

/** The part of a `NatsConnection` that is used. */
export interface NatsConnection {
  publish(subject: string, data: string, options: { reply: string; headers: never }): void;
  subscribe(subject: string, options: { callback: (error: unknown, answer: never) => void }): unknown;
  status(): AsyncIterable<{ readonly type: string }>;
  readonly options?: { readonly inboxPrefix?: string };
}

export interface NatsPost {
  readonly subject: string;
  readonly body: string;
  readonly headers: NatsHeaders;
}

interface Batch {
  readonly results: (PublishResult | undefined)[];
  unanswered: number;
  readonly done: () => void;
}

/** Reads the answer about one message. */
export type ReadAnswer = (text: string, status: number | undefined) => PublishResult;

/**
 * Publishes batches on a connection and matches the answers itself. A request per message would make the client capture two stack traces and set
 * a timer for each, and would keep waiting for its timeout when the connection is lost, although the answer cannot come any more.
 */
export class NatsLine {
  readonly #connection: NatsConnection;
  readonly #read: ReadAnswer;
  readonly #timeoutMs: number;
  readonly #batches = new Map<string, Batch>();
  readonly #onLost = new Set<() => void>();
  #inbox: string | undefined;
  #isUp = true;
  #count = 0;

  constructor(connection: NatsConnection, read: ReadAnswer, timeoutMs: number) {
    this.#connection = connection;
    this.#read = read;
    this.#timeoutMs = timeoutMs;
  }

  /** Gives undefined for a message without an answer, with the reason why there is none. */
  async publish(
    posts: readonly NatsPost[],
    judgeThrown: (error: unknown) => PublishResult,
  ): Promise<{ readonly results: readonly (PublishResult | undefined)[]; readonly reason: string }> {
    if (!this.#isUp) return { results: posts.map(() => undefined), reason: "not connected" };
    this.#inbox ??= this.#listen();
    const replyTo = `${this.#inbox}.${++this.#count}`;
    const results: (PublishResult | undefined)[] = posts.map(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    const answered = new Promise<string>((resolve) => {
      const batch: Batch = { results, unanswered: posts.length, done: () => resolve("") };
      this.#batches.set(replyTo, batch);
      for (const [index, { subject, body, headers }] of posts.entries()) {
        try {
          this.#connection.publish(subject, body, { reply: `${replyTo}.${index}`, headers: headers as never });
        } catch (error) {
          this.#settle(batch, index, judgeThrown(error));
        }
      }
      timer = setTimeout(() => resolve(`no answer within ${this.#timeoutMs} ms`), this.#timeoutMs);
    });
    const reason = (await this.orLost(answered)) ?? "the connection was lost";
    clearTimeout(timer);
    this.#batches.delete(replyTo);
    return { results, reason };
  }

  /** Gives undefined if the connection is lost first. */
  async orLost<Value>(answer: Promise<Value>): Promise<Value | undefined> {
    const { promise: lost, resolve } = deferred<undefined>();
    const tell = (): void => resolve(undefined);
    this.#onLost.add(tell);
    return await Promise.race([answer, lost]).finally(() => this.#onLost.delete(tell));
  }

  #listen(): string {
    const prefix = this.#connection.options?.inboxPrefix ?? "_INBOX";
    const inbox = `${prefix}.hathi-${randomUUID()}`;
    this.#connection.subscribe(`${inbox}.>`, { callback: (error, answer) => this.#hear(error, answer) });
    void this.#watch();
    return inbox;
  }

  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status()) {
      if (type === "reconnect") this.#isUp = true;
      if (type !== "disconnect") continue;
      this.#isUp = false;
      for (const tell of this.#onLost) tell();
    }
  }

  #hear(error: unknown, answer: NatsAnswer): void {
    if (error) return;
    const { subject } = answer;
    const end = subject.lastIndexOf(".");
    const batch = this.#batches.get(subject.slice(0, end));
    if (batch) this.#settle(batch, Number(subject.slice(end + 1)), this.#read(answer.string(), answer.headers?.code));
  }

  #settle(batch: Batch, index: number, result: PublishResult): void {
    if (batch.results[index]) return;
    batch.results[index] = result;
    if (--batch.unanswered === 0) batch.done();
  }
}
