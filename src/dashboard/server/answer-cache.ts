import { setTimeout as sleep } from "node:timers/promises";

interface Kept {
  value: unknown;
  /** When the value was asked for, and when it was last asked for; monotonic. */
  madeFor: number;
  askedAt: number;
  tookMs: number;
  /** What it takes on a machine that has nothing else to do; it rises slowly, so that a busy moment does not count as costly. */
  costMs: number;
  /** When a page last asked for it. */
  wantedAt: number;
  isStale: boolean;
  pending: Promise<unknown> | undefined;
}

/** The work for one answer takes this share of a connection's time at most, however many look at it. */
const restPerWork = 50;
/** All that pages read again while they are open takes this share of a connection's time at most, however many and different they are. */
const shareOfFollowers = 0.01;
/** What was asked for so recently is on an open page: streams ask every second. */
const wantedMs = 5_000;
const firstCostMs = 10;
/** Whatever it costs, an open page is not older, unless one answer takes seconds. */
const oldestMs = 60_000;
const leastRest = 10;
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
  readonly #kept: Map<string, Kept>;
  readonly #isForFollowers: boolean;

  constructor(kept = new Map<string, Kept>(), isForFollowers = false) {
    this.#kept = kept;
    this.#isForFollowers = isForFollowers;
  }

  /** The same cache for pages that stay open: its answers are made again as often as their share of the database's time allows. */
  forFollowers(): AnswerCache {
    return new AnswerCache(this.#kept, true);
  }

  /** At most `maxAgeMs` old, unless it is slow to make: then it is made again after `rest` times as long as it took. */
  async get<T>(key: string, maxAgeMs: number, make: () => Promise<T>, rest = restPerWork): Promise<T> {
    const kept = this.#kept.get(key);
    if (!kept) return (await this.#make(key, make)) as T;
    kept.wantedAt = nowMs();
    const ageMs = nowMs() - kept.askedAt;
    const restMs = this.#isForFollowers ? this.#restOf(kept) : kept.tookMs * rest;
    const isFresh = !kept.isStale && ageMs < Math.max(maxAgeMs, restMs);
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

  /**
   * How long to leave an answer alone so that all that are looked at fit into the share. Intervals that grow with the root of the cost keep the answers as young as
   * that allows, taken together: what costs little stays live.
   */
  #restOf({ costMs, tookMs }: Kept): number {
    const since = nowMs() - wantedMs;
    let roots = 0;
    for (const kept of this.#kept.values()) if (kept.wantedAt > since) roots += Math.sqrt(kept.costMs);
    return Math.max(tookMs * leastRest, Math.min(oldestMs, (Math.sqrt(costMs) * roots) / shareOfFollowers));
  }

  #make(key: string, make: () => Promise<unknown>): Promise<unknown> {
    const kept = this.#kept.get(key) ?? {
      value: undefined,
      madeFor: 0,
      askedAt: 0,
      tookMs: 0,
      costMs: 0,
      wantedAt: nowMs(),
      isStale: false,
      pending: undefined,
    };
    if (kept.pending && !kept.isStale) return kept.pending;
    const askedAt = nowMs();
    const pending = make().then(
      (value) => {
        if (kept.pending === pending) kept.pending = undefined;
        // Of two that were under way, the one that was asked for last counts.
        if (askedAt >= kept.madeFor) {
          const tookMs = nowMs() - askedAt;
          const costMs = Math.min(tookMs, Math.max(firstCostMs, 2 * kept.costMs));
          Object.assign(kept, { value, madeFor: askedAt, tookMs, costMs });
        }
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
