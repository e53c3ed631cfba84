import { Listener, type ListenOn } from "../db/listener.ts";

/** Someone who wants to hear of ended jobs. */
export interface Hearer {
  /** A connection of its own; used while no one else's is. */
  readonly listenOn: ListenOn;
  /** Sends a notification over another connection. */
  readonly notify: (channel: string, payload: string) => Promise<unknown>;
  /** From here on notifications arrive; what was sent before may have been missed. */
  readonly onListening: () => void;
  readonly onEnded: (payload: string | undefined) => void;
  /** Only the hearer whose connection it is learns of its trouble. */
  readonly onError: (error: unknown) => void;
  /** Nothing arrives here; `isOwner` if this hearer's connection was the one that was tried. */
  readonly onDeaf: (isOwner: boolean) => void;
}

/** All ears of this process, by the database that they listen to. */
const ears = new Map<unknown, SharedEar>();

/**
 * One connection that listens for ended jobs, for everyone in this process who waits on the same database, whatever the schema. It belongs to one
 * of the hearers. When that one leaves, another one's takes its place; those that stay are asked to check again, because a notification may have been missed in between.
 */
export class SharedEar {
  readonly #key: unknown;
  readonly #hearers = new Set<Hearer>();
  #owner: Hearer | undefined;
  #listener: Listener | undefined;
  #isDeaf = false;

  private constructor(key: unknown) {
    this.#key = key;
  }

  /** The ear of the hearer's database. Call `leave` on it in the end. */
  static join(hearer: Hearer): SharedEar {
    const key = hearer.listenOn.source;
    const ear = ears.get(key) ?? new SharedEar(key);
    ears.set(key, ear);
    ear.#hearers.add(hearer);
    if (ear.#isDeaf) hearer.onDeaf(false);
    else if (!ear.#owner) ear.#listenFor(hearer);
    return ear;
  }

  /** True while notifications can be relied on. */
  get isListening(): boolean {
    return this.#listener?.isListening ?? false;
  }

  /** Resolves when the hearer's connection is free again, if it was the one in use. */
  async leave(hearer: Hearer): Promise<void> {
    if (!this.#hearers.delete(hearer)) return;
    if (this.#hearers.size === 0 && ears.get(this.#key) === this) ears.delete(this.#key);
    if (this.#owner !== hearer) return;
    const listener = this.#listener;
    this.#owner = undefined;
    this.#listener = undefined;
    const [next] = this.#hearers;
    if (next && !this.#isDeaf) this.#listenFor(next);
    await listener?.stop();
  }

  #listenFor(owner: Hearer): void {
    const listener: Listener = new Listener({
      ...owner.listenOn,
      channels: ["hathi:ended"],
      notify: owner.notify,
      onConnecting: () => undefined,
      onConnected: () => undefined,
      onListening: () => this.#each(listener, (hearer) => hearer.onListening()),
      onNotification: ({ payload }) => this.#each(listener, (hearer) => hearer.onEnded(payload)),
      onError: (error) => owner.onError(error),
      onReleased: () => undefined,
      onDeaf: () => {
        this.#isDeaf ||= this.#listener === listener;
        this.#each(listener, (hearer) => hearer.onDeaf(hearer === owner));
      },
    });
    this.#owner = owner;
    this.#listener = listener;
    listener.start();
  }

  /** A listener that was replaced may still hear something while it stops. */
  #each(listener: Listener, tell: (hearer: Hearer) => void): void {
    if (this.#listener === listener) for (const hearer of [...this.#hearers]) tell(hearer);
  }
}
