import { setTimeout as sleep } from "node:timers/promises";

interface Kept {
  value: unknown;
  /** When the value was asked for, and when it was last asked for; monotonic. */
  madeFor: number;
  askedAt: number;
  tookMs: number;
  isStale: boolean;
  pending: Promise<unknown> | undefined;
}

/** The work for one answer takes this share of a connection's time at most, however many look at it. */
const restPerWork = 50;
/** What takes longer is shown as it was while it is read again. */
const slowMs = 100;
const usableMs = 5 * 60_000;
const mostEntries = 150;

const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

/**
 * Answers that all viewers share. One that is asked for by many is made once; one that was slow to make is made seldom, and shown meanwhile as it was. The
 * database does as much for ten viewers as for one.
 */
export class AnswerCache {
  readonly #kept = new Map<string, Kept>();

  /** At most `maxAgeMs` old, unless it is slow to make: then it is made again after `rest` times as long as it took. */
  async get<T>(key: string, maxAgeMs: number, make: () => Promise<T>, rest = restPerWork): Promise<T> {
    const kept = this.#kept.get(key);
    if (!kept) return (await this.#make(key, make)) as T;
    const ageMs = nowMs() - kept.askedAt;
    const isFresh = !kept.isStale && ageMs < Math.max(maxAgeMs, kept.tookMs * rest);
    if (isFresh) return (kept.pending ?? kept.value) as T;
    const isUsable = kept.value !== undefined && kept.tookMs > slowMs && ageMs < usableMs;
    const making = this.#make(key, make);
    if (!isUsable) return (await making) as T;
    making.catch(() => undefined);
    return kept.value as T;
  }

  /** As `get`, for as long as a page can wait; undefined if it takes longer or fails. Whoever asks next has it. */
  async soon<T>(key: string, maxAgeMs: number, make: () => Promise<T>, rest?: number): Promise<T | undefined> {
    const late = new AbortController();
    const got = this.get(key, maxAgeMs, make, rest).catch(() => undefined);
    try {
      return await Promise.race([got, sleep(slowMs, undefined, { signal: late.signal }).catch(() => undefined)]);
    } finally {
      late.abort();
    }
  }

  /** What is there; if that is nothing or old, it is made for whoever asks next. */
  peek<T>(key: string, maxAgeMs: number, make: () => Promise<T>): T | undefined {
    const kept = this.#kept.get(key);
    if (!kept || nowMs() - kept.askedAt > Math.max(maxAgeMs, kept.tookMs * restPerWork)) {
      this.#make(key, make).catch(() => undefined);
    }
    return kept?.value as T | undefined;
  }

  /** Something was changed: everything is to be read again. */
  markStale(): void {
    for (const kept of this.#kept.values()) kept.isStale = true;
  }

  #make(key: string, make: () => Promise<unknown>): Promise<unknown> {
    const kept = this.#kept.get(key) ?? {
      value: undefined,
      madeFor: 0,
      askedAt: 0,
      tookMs: 0,
      isStale: false,
      pending: undefined,
    };
    if (kept.pending && !kept.isStale) return kept.pending;
    const askedAt = nowMs();
    const pending = make().then(
      (value) => {
        if (kept.pending === pending) kept.pending = undefined;
        // Of two that were under way, the one that was asked for last counts.
        if (askedAt >= kept.madeFor) Object.assign(kept, { value, madeFor: askedAt, tookMs: nowMs() - askedAt });
        return value;
      },
      (error: unknown) => {
        if (kept.pending === pending) kept.pending = undefined;
        // The next one asks again, but not at once.
        kept.tookMs = nowMs() - askedAt;
        if (kept.value === undefined && this.#kept.get(key) === kept) this.#kept.delete(key);
        throw error;
      },
    );
    Object.assign(kept, { askedAt, isStale: false, pending });
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= mostEntries) break;
      this.#kept.delete(oldest);
    }
    return pending;
  }
}
