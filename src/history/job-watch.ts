import type { Database } from "../db/database.ts";
import type { ListenOn } from "../db/listener.ts";
import { OutageLog, troubleOf } from "../db/outage-log.ts";
import { isTransient } from "../db/sqlstate.ts";
import { notify } from "../db/statements/notify.ts";
import { type WatchedJobRow, watchJobs } from "../db/statements/watch.ts";
import type { Logger } from "../logger.ts";
import { clearTimeout, monotonicMs, setTimeout } from "../util/timers.ts";
import { SharedListener, type Subscriber } from "./shared-listener.ts";

/** What a watcher gets after each query about its job. */
export interface Watcher {
  /** Undefined if nothing is known of the job. */
  readonly onAnswer: (row: WatchedJobRow | undefined) => void;
  /** The query failed, or watching has ended. */
  readonly onError: (error: Error) => void;
}

export interface JobWatchOptions {
  readonly database: Database;
  /** The connection to listen on; undefined to rely on polling alone. */
  readonly listenOn: ListenOn | undefined;
  readonly logger: Logger;
}

/** Between two questions, however many notifications arrive. */
const minRestMs = 25;
/** How often everything is asked about: ends that no notification tells of, and notifications that were lost. */
const pollMs = 1_000;
const deafPollMs = 500;
/** More jobs than this are asked about in turns. */
const maxIds = 10_000;
/** The connection is kept for this long after the last watcher has gone. */
const lingerMs = 5_000;

/**
 * Asks where jobs are, for all who watch one: one query at a time for all of them, and a connection that listens, which is shared with other
 * watches of the process. Every watcher's first question is asked after it has come, so that no end can be missed; a notification only makes the next
 * question come sooner.
 */
export class JobWatch {
  readonly #options: JobWatchOptions;
  readonly #outages: OutageLog;
  readonly #watchers = new Map<string, Set<Watcher>>();
  #due = new Set<string>();
  #isAsking = false;
  #askedAt = Number.NEGATIVE_INFINITY;
  #polledAt = Number.NEGATIVE_INFINITY;
  #isTroubled = false;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #linger: NodeJS.Timeout | undefined;
  readonly #subscriber: Subscriber | undefined;
  #shared: SharedListener | undefined;
  #isDeaf = false;
  #closed: Error | undefined;

  constructor(options: JobWatchOptions) {
    this.#options = options;
    this.#outages = new OutageLog(options.logger);
    if (options.listenOn) this.#subscriber = this.#makeSubscriber(options.listenOn);
  }

  /** Asks about the job until the returned function is called. */
  watch(id: string, watcher: Watcher): () => void {
    if (this.#closed) {
      watcher.onError(this.#closed);
      return () => undefined;
    }
    if (this.#watchers.size === 0) this.#begin();
    const others = this.#watchers.get(id);
    if (others) others.add(watcher);
    else this.#watchers.set(id, new Set([watcher]));
    this.#due.add(id);
    this.#plan();
    return () => this.#leave(id, watcher);
  }

  /** Tells every watcher that watching has ended. */
  async close(reason: Error): Promise<void> {
    this.#closed = reason;
    for (const watcher of [...this.#watchers.values()].flatMap((set) => [...set])) watcher.onError(reason);
    this.#watchers.clear();
    this.#cancelTimer();
    clearTimeout(this.#linger);
    await this.#stopListening();
  }

  #leave(id: string, watcher: Watcher): void {
    const others = this.#watchers.get(id);
    if (!others?.delete(watcher) || others.size > 0) return;
    this.#watchers.delete(id);
    this.#due.delete(id);
    if (this.#watchers.size > 0 || this.#closed) return;
    this.#cancelTimer();
    this.#linger = setTimeout(() => void this.#stopListening(), lingerMs);
    this.#linger.unref();
  }

  #begin(): void {
    clearTimeout(this.#linger);
    this.#polledAt = monotonicMs();
    if (this.#subscriber && !this.#shared && !this.#isDeaf) this.#shared = SharedListener.join(this.#subscriber);
  }

  async #stopListening(): Promise<void> {
    const shared = this.#shared;
    this.#shared = undefined;
    if (!this.#subscriber) return;
    this.#outages.leave(this.#subscriber);
    await shared?.leave(this.#subscriber);
  }

  #makeSubscriber(listenOn: ListenOn): Subscriber {
    const { database, logger } = this.#options;
    const subscriber: Subscriber = {
      listenOn,
      notify: (channel, payload) => database.run(notify, { channel, payload }),
      onListening: () => {
        this.#outages.well(subscriber);
        this.#askAll();
      },
      onEnded: (payload) => this.#hear(payload),
      onError: (error) => this.#outages.trouble(subscriber, troubleOf(error), error),
      onDeaf: (isOwner) => {
        this.#isDeaf = true;
        logger[isOwner ? "info" : "debug"](
          `Notifications do not arrive on this connection, so finished jobs are found by a poll every ${deafPollMs} ms.`,
        );
      },
    };
    return subscriber;
  }

  /** Ids as JSON, or none if there were too many. */
  #hear(payload: string | undefined): void {
    let ids: unknown;
    try {
      ids = JSON.parse(payload ?? "");
    } catch {
      return; // anybody may notify
    }
    if (!Array.isArray(ids)) return;
    for (const id of ids) if (this.#watchers.has(String(id))) this.#due.add(String(id));
    if (ids.length === 0) this.#askAll();
    else this.#plan();
  }

  #askAll(): void {
    this.#polledAt = monotonicMs();
    for (const id of this.#watchers.keys()) this.#due.add(id);
    this.#plan();
  }

  #cancelTimer(): void {
    clearTimeout(this.#timer);
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  /** When everything is asked about again. */
  get #pollAt(): number {
    return this.#polledAt + (this.#shared?.isListening ? pollMs : deafPollMs);
  }

  /** Sets the timer for the next question: soon, if there is one to ask, else at the next poll. */
  #plan(): void {
    if (this.#isAsking || this.#watchers.size === 0) return;
    const isUrgent = this.#due.size > 0 && !this.#isTroubled;
    const at = isUrgent ? Math.min(this.#askedAt + minRestMs, this.#pollAt) : this.#pollAt;
    // One that comes sooner stays: whoever comes all the time must not put it off.
    if (this.#timerAt <= at) return;
    this.#cancelTimer();
    this.#timerAt = at;
    this.#timer = setTimeout(() => void this.#ask(), Math.max(0, at - monotonicMs()));
  }

  async #ask(): Promise<void> {
    this.#cancelTimer();
    this.#askedAt = monotonicMs();
    if (this.#askedAt >= this.#pollAt) {
      this.#polledAt = this.#askedAt;
      for (const id of this.#watchers.keys()) this.#due.add(id);
    }
    const ids = [...this.#due].slice(0, maxIds);
    for (const id of ids) this.#due.delete(id);
    this.#isAsking = true;
    try {
      const rows = ids.length > 0 ? await this.#options.database.run(watchJobs, { ids }) : [];
      this.#isTroubled = false;
      this.#outages.well(this);
      this.#tell(ids, new Map(rows.map((row) => [row.id, row])));
    } catch (error) {
      this.#fail(ids, error as Error);
    }
    this.#isAsking = false;
    this.#plan();
  }

  #tell(ids: readonly string[], rows: ReadonlyMap<string, WatchedJobRow>): void {
    for (const id of ids) {
      const row = rows.get(id);
      if (row?.is_later) {
        if (this.#watchers.has(id)) this.#due.add(id);
        continue;
      }
      for (const watcher of [...(this.#watchers.get(id) ?? [])]) watcher.onAnswer(row);
    }
  }

  /** An unreachable database is asked again; an error that it answers with concerns those who asked. */
  #fail(ids: readonly string[], error: Error): void {
    if (this.#closed) return;
    if (isTransient(error)) {
      for (const id of ids) if (this.#watchers.has(id)) this.#due.add(id);
      this.#isTroubled = true;
      this.#outages.trouble(this, troubleOf(error), error);
      return;
    }
    for (const watcher of ids.flatMap((id) => [...(this.#watchers.get(id) ?? [])])) watcher.onError(error);
  }
}
