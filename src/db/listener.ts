import { randomUUID } from "node:crypto";
import type { Notification, PoolClient } from "pg";
import { deferred } from "../util/deferred.ts";
import type { Service } from "../util/service.ts";
import { sleep } from "../util/sleep.ts";
import { clearInterval, setImmediate, setInterval } from "../util/timers.ts";
import { queryWithin } from "./query-within.ts";

export interface ListenOn {
  /** The client to listen on; it is ours until `release`. */
  readonly connect: () => Promise<PoolClient>;
  /** Others use it after us, so it must stop listening before it is released. Otherwise it is closed. */
  readonly isLent: boolean;
  /** Equal for connections that hear the same: a connection string, or a pool. */
  readonly source: unknown;
}

/** What a caller that wants notifications must provide. */
export interface ListenerOptions extends Omit<ListenOn, "source"> {
  /** To be waited for before the first attempt: whoever starts with us may need the connection that is open already. */
  readonly after?: Promise<unknown>;
  /** What to listen for; what workers do, if left out. */
  readonly channels?: readonly string[];
  /** Sends a notification over another connection, to find out whether we hear anything at all. */
  readonly notify: (channel: string, payload: string) => Promise<unknown>;
  readonly onConnecting: (attempts: number) => void;
  readonly onConnected: (client: PoolClient) => void;
  /** From here on notifications arrive; what was sent before may have been missed. */
  readonly onListening: () => void;
  readonly onNotification: (message: Notification, client: PoolClient) => void;
  /** Without a client if none could be had. */
  readonly onError: (error: unknown, client: PoolClient | undefined) => void;
  readonly onReleased: (client: PoolClient) => void;
  /** How often to see whether the connection is alive: one that died without a word hears nothing, too. */
  readonly checkMs?: number;
  /** How long a notification may be on its way before we count as deaf. */
  readonly hearMs?: number;
  /** How long it may take to answer. */
  readonly patienceMs?: number;
  /** Listening was accepted, but nothing is heard: there is a pooler in between. */
  readonly onDeaf: () => void;
}

const testChannel = "hathi:test";
export const fleetChannel = "hathi:fleet";
const workerChannels = ["jobs:insert", "worker:migrate", "hathi:pauses", "hathi:cancel", "hathi:limits", fleetChannel];
const maxRestMs = 5_000;
/** By then a starting worker has a connection to spare for the test, and need not open one for it. */
const testAfterMs = 100;

/** The LISTEN connection: reconnects with back-off, and tells when it hears nothing. */
export class Listener implements Service {
  readonly #options: ListenerOptions;
  readonly #stop = new AbortController();
  readonly #stopped: Promise<undefined>;
  readonly #token = randomUUID();
  #loop: Promise<void> = Promise.resolve();
  #isListening = false;
  #heard: (() => void) | undefined;
  #isTested = false;
  #isDeaf = false;

  constructor(options: ListenerOptions) {
    this.#options = options;
    this.#stopped = new Promise((resolve) => {
      this.#stop.signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
  }

  /** True while notifications can be relied on. */
  get isListening(): boolean {
    return this.#isListening;
  }

  start(): void {
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    for (let attempts = 0; !signal.aborted; ) {
      this.#options.onConnecting(attempts);
      if (attempts === 0) await this.#letOthersStart();
      let client: PoolClient | undefined;
      try {
        client = await this.#connect();
        if (!client) return;
        await this.#listen(client, () => {
          attempts = 0;
        });
      } catch (error) {
        if (!signal.aborted) this.#options.onError(error, client);
      }
      if (signal.aborted || this.#isDeaf) return;
      attempts++;
      await sleep(
        Math.ceil((0.5 + Math.sqrt(Math.random()) / 2) * Math.min(maxRestMs, 50 * Math.exp(attempts))),
        signal,
      );
    }
  }

  /** Whoever goes on at the same moment takes its connection first. */
  async #letOthersStart(): Promise<void> {
    await Promise.race([this.#options.after, this.#stopped]);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Undefined if we were stopped meanwhile: a pool that has no connection to spare must not hold up a shutdown. */
  async #connect(): Promise<PoolClient | undefined> {
    const { signal } = this.#stop;
    const client = this.#options.connect();
    const won = await Promise.race([client, this.#stopped]);
    if (won || !signal.aborted) return won;
    client.then(
      (late) => late.release(),
      () => undefined,
    );
    return undefined;
  }

  /** Resolves when listening is over on purpose, rejects when the connection is lost. */
  async #listen(client: PoolClient, onListening: () => void): Promise<void> {
    const { signal } = this.#stop;
    const lost = deferred();
    lost.promise.catch(() => undefined); // it may be lost after we stopped caring
    const onError = (error: Error): void => lost.reject(error);
    const onEnd = (): void => lost.reject(new Error("The connection that listens for jobs was closed."));
    const onAbort = (): void => lost.resolve();
    let hasHeard = false;
    const onNotification = (message: Notification): void => {
      hasHeard = true;
      if (message.channel === testChannel) {
        if (message.payload === this.#token) this.#heard?.();
        return;
      }
      this.#options.onNotification(message, client);
    };
    client.on("error", onError);
    client.on("end", onEnd);
    client.on("notification", onNotification);
    signal.addEventListener("abort", onAbort, { once: true });
    let failure: Error | undefined;
    let check: NodeJS.Timeout | undefined;
    const over = new AbortController();
    const { isLent, checkMs = 60_000, patienceMs = 10_000 } = this.#options;
    const channels = [...(this.#options.channels ?? workerChannels), testChannel];
    const ask = (text: string): Promise<unknown> => queryWithin(client, { text }, patienceMs);
    try {
      if (signal.aborted) return;
      this.#options.onConnected(client);
      await ask(channels.map((channel) => `LISTEN "${channel}"`).join("; "));
      this.#isListening = true;
      onListening();
      this.#options.onListening();
      void this.#testHearing(over.signal, () => lost.resolve());
      check = setInterval(() => {
        // What is heard is alive.
        if (!hasHeard) void ask("select 1").catch(onError);
        hasHeard = false;
      }, checkMs);
      await lost.promise;
      if (isLent) await ask(channels.map((channel) => `UNLISTEN "${channel}"`).join("; "));
    } catch (error) {
      failure = error as Error;
    } finally {
      clearInterval(check);
      over.abort();
      this.#isListening = false;
      signal.removeEventListener("abort", onAbort);
      client.removeListener("end", onEnd);
      client.removeListener("notification", onNotification);
      this.#options.onReleased(client);
      client.release(failure ?? !isLent);
      client.removeListener("error", onError);
    }
    if (failure) throw failure;
  }

  /** Sends ourselves a notification, once. A transaction pooler takes the LISTEN and then delivers nothing. */
  async #testHearing(over: AbortSignal, giveUp: () => void): Promise<void> {
    if (this.#isTested) return;
    await sleep(testAfterMs, over);
    if (over.aborted) return;
    const heard = new Promise<boolean>((resolve) => {
      this.#heard = () => resolve(true);
    });
    try {
      await this.#options.notify(testChannel, this.#token);
    } catch {
      return; // the connection is in trouble, which is another matter
    }
    const timeOut = new AbortController();
    const isHeard = await Promise.race([
      heard,
      sleep(this.#options.hearMs ?? 4_000, AbortSignal.any([timeOut.signal, over]))
        // In a process that was held up, what arrived in time is read only now.
        .then(() => new Promise((resolve) => setImmediate(resolve)))
        .then(() => false),
    ]);
    timeOut.abort();
    if (over.aborted) return; // the connection that should have heard is gone; the next one is tested again
    this.#heard = undefined;
    this.#isTested = true;
    if (isHeard) return;
    this.#isDeaf = true;
    this.#options.onDeaf();
    giveUp();
  }
}
