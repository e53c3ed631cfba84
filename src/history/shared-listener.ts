import { Listener, type ListenOn } from "../db/listener.ts";

/** What waits for ended jobs. */
export interface Subscriber {
  /** A connection of its own; used while no one else's is. */
  readonly listenOn: ListenOn;
  /** Sends a notification over another connection. */
  readonly notify: (channel: string, payload: string) => Promise<unknown>;
  /** From here on notifications arrive; what was sent before may have been missed. */
  readonly onListening: () => void;
  readonly onEnded: (payload: string | undefined) => void;
  /** Only the subscriber whose connection it is learns of its trouble. */
  readonly onError: (error: unknown) => void;
  /** Nothing arrives here; `isOwner` if this subscriber's connection was the one that was tried. */
  readonly onDeaf: (isOwner: boolean) => void;
}

/** All listeners of this process, by the database that they listen to. */
const listeners = new Map<unknown, SharedListener>();

/**
 * One connection that listens for ended jobs, shared by all subscribers of this process to one database, in any schema. It belongs to one
 * of them. When that one leaves, another subscriber's connection replaces it, and all check again: a notification may have been missed in between.
 */
export class SharedListener {
  readonly #key: unknown;
  readonly #subscribers = new Set<Subscriber>();
  #owner: Subscriber | undefined;
  #listener: Listener | undefined;
  #isDeaf = false;

  private constructor(key: unknown) {
    this.#key = key;
  }

  /** The listener of the database of this subscriber, who calls `leave` in the end. */
  static join(subscriber: Subscriber): SharedListener {
    const key = subscriber.listenOn.source;
    const shared = listeners.get(key) ?? new SharedListener(key);
    listeners.set(key, shared);
    shared.#subscribers.add(subscriber);
    if (shared.#isDeaf) subscriber.onDeaf(false);
    else if (!shared.#owner) shared.#listenFor(subscriber);
    return shared;
  }

  /** True while notifications can be relied on. */
  get isListening(): boolean {
    return this.#listener?.isListening ?? false;
  }

  /** Resolves when the subscriber's connection is free again, if it was the one in use. */
  async leave(subscriber: Subscriber): Promise<void> {
    if (!this.#subscribers.delete(subscriber)) return;
    if (this.#subscribers.size === 0 && listeners.get(this.#key) === this) listeners.delete(this.#key);
    if (this.#owner !== subscriber) return;
    const listener = this.#listener;
    this.#owner = undefined;
    this.#listener = undefined;
    const [next] = this.#subscribers;
    if (next && !this.#isDeaf) this.#listenFor(next);
    await listener?.stop();
  }

  #listenFor(owner: Subscriber): void {
    const listener: Listener = new Listener({
      ...owner.listenOn,
      channels: ["hathi:ended"],
      notify: owner.notify,
      onConnecting: () => undefined,
      onConnected: () => undefined,
      onListening: () => this.#each(listener, (subscriber) => subscriber.onListening()),
      onNotification: ({ payload }) => this.#each(listener, (subscriber) => subscriber.onEnded(payload)),
      onError: (error) => owner.onError(error),
      onReleased: () => undefined,
      onDeaf: () => {
        this.#isDeaf ||= this.#listener === listener;
        this.#each(listener, (subscriber) => subscriber.onDeaf(subscriber === owner));
      },
    });
    this.#owner = owner;
    this.#listener = listener;
    listener.start();
  }

  /** A listener that was replaced may still hear something while it stops. */
  #each(listener: Listener, tell: (subscriber: Subscriber) => void): void {
    if (this.#listener === listener) for (const subscriber of [...this.#subscribers]) tell(subscriber);
  }
}
