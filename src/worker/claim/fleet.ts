import { clearTimeout, monotonicMs, setTimeout } from "../../util/timers.ts";

/*
 * Processes that run the same tasks share the work of looking for jobs. They talk over a notification channel, inside statements that
 * they send anyway:
 *
 * - A process that has scanned for jobs tells the others so. That counts as their own poll, so an idle fleet polls about as often as one process.
 *   They take turns: whoever has told nothing for the longest time polls next, so that few have to tell of themselves beside that.
 * - Of an added job the notification wakes everyone, but only those claim at once that it takes: they come first in an order that all compute
 *   alike from the notification. Three more follow after 5, 10 and 15 ms and the others after 30 to 100 ms, unless one has told meanwhile that it
 *   scanned after that notification and left nothing. Those three tell only if they have found a job. Notifications reach all listeners in the order of their commits, so "after" means the same to all.
 *
 * Whoever hears nothing polls by itself, and whoever knows too few others claims at every notification. So a process that died, froze, is
 * full, or cannot hear costs a job those 100 ms at most, and a claim too many is the worst that a wrong view of the fleet leads to.
 */

/** What a process tells after a scan. */
export interface FleetNews {
  /** Who. */
  readonly p: string;
  /** Schema, tasks and flags: news of other kinds say nothing about our jobs. */
  readonly k: string;
  /** The last added job that it had heard of before it scanned. */
  readonly r: number | null;
  /** It scanned everywhere. */
  readonly scan: boolean;
  /** Nothing was in its way. */
  readonly all: boolean;
  /** It has no room left. */
  readonly full: boolean;
  /** When the next known job falls due, in milliseconds. */
  readonly due: number | null;
}

/** To be sent with a claim: news that lack their end. */
export interface Announcement {
  readonly text: string;
  /** From how many claimed jobs on they are worth telling: from none on, from one on, or only if there is no room left. */
  readonly from: number;
}

const ifFull = Number.POSITIVE_INFINITY;

export interface FleetOptions {
  readonly id: () => string;
  readonly slots: () => number;
  /** False where others' scans cannot stand for ours. */
  readonly isOpen: () => boolean;
  /** No process has announced a scan since jobs were added: claim. */
  readonly onFollow: (count: number) => void;
  readonly random?: () => number;
  readonly now?: () => number;
}

interface Peer {
  readonly hash: number;
  heardAt: number;
  hasRoom: boolean;
}

interface Pending {
  readonly nth: number;
  readonly count: number;
  readonly heardAt: number;
  readonly dueAt: number;
  readonly insert: number;
  /** How many were to claim at once and tell; 0 if we are one of those who follow first. */
  readonly chosen: number;
}

/** How often each process lets others know of it, and how long it is remembered. */
const presenceMs = 30_000;
const forgetMs = 75_000;
const greetMs = { min: 500, max: 4_000 };
/** A larger fleet takes more time for both: each word of one wakes all. */
const largeFleet = 100;
/** So many follow first, one after the other, so that one of them is neither frozen nor full; then all the others. */
const spare = 3;
const spareMs = 5;
const followMs = { min: 30, max: 100 };
const remembered = 1_000;
/** How often to look for peers to forget. */
const tidyMs = 1_000;

/** What one process knows of the others that run the same tasks. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #random: () => number;
  readonly #now: () => number;
  readonly #peers = new Map<string, Peer>();
  /** In the order in which they were heard. */
  readonly #nthByInsert = new Map<number, number>();
  #nth = 0;
  #lastInsert: number | null = null;
  #isAsked = false;
  #pending: Pending[] = [];
  #timer: NodeJS.Timeout | undefined;
  #kind: string | null = null;
  #tidyAt = 0;
  #presenceAt = 0;
  #toldAt = 0;
  #saidRoom = false;
  /** Our next claim is one of those that follow first. */
  #isSpare = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#random = options.random ?? Math.random;
    this.#now = options.now ?? monotonicMs;
  }

  /** When others should hear of us again; and our place in the line of those who poll next, from 0 to 1: first comes who has told nothing for the longest time. */
  get turn(): { readonly presenceAt: number; readonly place: number } {
    let before = 0;
    for (const { heardAt } of this.#peers.values()) if (heardAt < this.#toldAt) before++;
    return { presenceAt: this.#presenceAt, place: before / Math.max(1, this.#peers.size) };
  }

  /** What our scans are about; peers of another kind are not ours. */
  describe(kind: string): void {
    if (kind === this.#kind) return;
    this.#kind = kind;
    this.#presenceAt = 0;
    this.forget();
  }

  /** Jobs were added. True: claim now. */
  hearInsert(insert: unknown, count: number): boolean {
    if (typeof insert !== "number") return true;
    const now = this.#now();
    this.#remember(insert);
    this.#isAsked = true;
    this.#isSpare = false;
    const needed = Math.ceil(count / Math.max(1, this.#options.slots()));
    const few = needed + spare;
    if (!this.#isOn || this.#countOthers(now) + 1 < 2 * few) return true;
    const { before, withRoom } = this.#placeFor(insert);
    if (withRoom < 2 * few || before < needed) return true;
    const isSpare = before < few;
    const restMs = isSpare
      ? (before - needed + 1) * spareMs
      : followMs.min + this.#random() * (followMs.max - followMs.min);
    const dueAt = now + restMs;
    this.#pending.push({ nth: this.#nth, count, heardAt: now, dueAt, insert, chosen: isSpare ? 0 : needed });
    this.#setTimer();
    return false;
  }

  /** How many of those who have room come before us, in the order for this insert. */
  #placeFor(insert: number): { before: number; withRoom: number } {
    const own = rank(insert, hashOf(this.#options.id()));
    let before = 0;
    let withRoom = 1;
    for (const { hash, hasRoom } of this.#peers.values()) {
      if (!hasRoom) continue;
      withRoom++;
      if (rank(insert, hash) < own) before++;
    }
    return { before, withRoom };
  }

  /** True if another's scan stands for our own. */
  hear(news: FleetNews): boolean {
    if (!this.#isOn || news.k !== this.#kind || news.p === this.#options.id()) return false;
    const known = this.#peers.get(news.p);
    if (known) Object.assign(known, { heardAt: this.#now(), hasRoom: !news.full });
    else this.#meet(news);
    if (!news.scan || !news.all || news.full) return false;
    const nth = news.r === null ? undefined : this.#nthByInsert.get(news.r);
    if (nth !== undefined) this.#settle(nth);
    return true;
  }

  /** A newcomer should hear of us soon, but not of all of us at once. */
  #meet({ p, full }: FleetNews): void {
    const now = this.#now();
    this.#peers.set(p, { hash: hashOf(p), heardAt: now, hasRoom: !full });
    const { min, max } = greetMs;
    this.#presenceAt = Math.min(this.#presenceAt, now + min + this.#random() * (max * this.#scale - min));
  }

  /** What to tell with a claim that begins now; null for nothing. */
  announce({ isTimed, seesAll }: { readonly isTimed: boolean; readonly seesAll: boolean }): Announcement | null {
    // Our own claim sees whatever was added before.
    this.#settle(this.#nth);
    if (!this.#isOn) return null;
    const now = this.#now();
    const others = this.#countOthers(now);
    const isAnswer = this.#isAsked && others + 1 >= 2 * (1 + spare);
    const isSpare = this.#isSpare && !isTimed;
    this.#isSpare = false;
    const isTold = others > 0 && seesAll && (isTimed || isAnswer);
    // Whoever follows first and finds nothing has met the one that was chosen: that one will tell.
    const from = now >= this.#presenceAt || (isTold && !isSpare) ? 0 : isTold ? 1 : ifFull;
    if (from === ifFull && !(others > 0 && this.#saidRoom)) return null;
    const head = { p: this.#options.id(), k: this.#kind, r: this.#lastInsert, scan: seesAll };
    return { text: JSON.stringify(head).slice(0, -1), from };
  }

  /** The claim has gone through. */
  announced({ from }: Announcement, { jobs, wanted }: { readonly jobs: number; readonly wanted: number }): void {
    if (jobs < Math.min(from, wanted)) return;
    this.#saidRoom = jobs < wanted;
    this.#isAsked = false;
    this.#toldAt = this.#now();
    this.#presenceAt = this.#toldAt + presenceMs * this.#scale * (0.75 + this.#random() / 2);
  }

  /** Nothing is heard any more. */
  forget(): void {
    this.#peers.clear();
    this.#nthByInsert.clear();
    this.#lastInsert = null;
    const count = this.#pending.reduce((sum, each) => sum + each.count, 0);
    this.#settle(this.#nth);
    if (count > 0) this.#options.onFollow(count);
  }

  close(): void {
    this.#pending = [];
    clearTimeout(this.#timer);
  }

  get #isOn(): boolean {
    return this.#kind !== null && this.#options.isOpen();
  }

  get #scale(): number {
    return Math.max(1, this.#peers.size / largeFleet);
  }

  #remember(insert: number): void {
    this.#lastInsert = insert;
    this.#nthByInsert.set(insert, ++this.#nth);
    if (this.#nthByInsert.size > remembered) this.#nthByInsert.delete(this.#nthByInsert.keys().next().value!);
  }

  #countOthers(now: number): number {
    if (now >= this.#tidyAt) {
      this.#tidyAt = now + tidyMs;
      const before = now - forgetMs * this.#scale;
      for (const [id, { heardAt }] of this.#peers) if (heardAt < before) this.#peers.delete(id);
    }
    return this.#peers.size;
  }

  #settle(upTo: number): void {
    if (this.#pending.length === 0) return;
    this.#pending = this.#pending.filter(({ nth }) => nth > upTo);
    this.#setTimer();
  }

  #setTimer(): void {
    clearTimeout(this.#timer);
    const dueAt = this.#pending.reduce((first, each) => Math.min(first, each.dueAt), Infinity);
    if (dueAt < Infinity) this.#timer = setTimeout(() => this.#follow(), Math.max(0, dueAt - this.#now())).unref();
  }

  /** Those who were chosen and have told nothing do not count until they do. */
  #doubtChosen({ insert, chosen, heardAt }: Pending): void {
    const byRank = [...this.#peers].sort(([, one], [, other]) => rank(insert, one.hash) - rank(insert, other.hash));
    const silent = byRank.filter(([, { hasRoom }]) => hasRoom).slice(0, chosen);
    for (const [id, peer] of silent) if (peer.heardAt <= heardAt) this.#peers.delete(id);
  }

  #follow(): void {
    const now = this.#now();
    const due = this.#pending.filter(({ dueAt }) => dueAt <= now);
    for (const each of due) this.#doubtChosen(each);
    const count = due.reduce((sum, each) => sum + each.count, 0);
    this.#pending = this.#pending.filter((each) => !due.includes(each));
    this.#isSpare = due.length > 0 && due.every(({ chosen }) => chosen === 0);
    this.#setTimer();
    if (count > 0) this.#options.onFollow(count);
  }
}

/** FNV-1a. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** The same number in every process, and another order of processes for each insert, which is a number from 0 to 1. */
function rank(insert: number, hash: number): number {
  let mixed = hash ^ (insert * 0xffffffff);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Reads what came over the channel, on which anyone may notify. */
export function readFleetNews(payload: string | undefined): FleetNews | undefined {
  try {
    const news = JSON.parse(payload ?? "") as Partial<FleetNews> | null;
    return typeof news?.p === "string" && typeof news.k === "string" ? (news as FleetNews) : undefined;
  } catch {
    return undefined;
  }
}
