import type { Job } from "../../job.ts";
import { monotonicMs } from "../../util/timers.ts";
import { Buffer, type Unstarted } from "../claim/buffer.ts";
import { HoldWatch } from "../claim/hold-watch.ts";
import type { Lateness } from "../claim/lateness.ts";
import type { Pace } from "../claim/pace.ts";
import { type JobStart, TimedStarts } from "./timed-starts.ts";

/** How often the pace hears how many were started, if there is always another one to start. */
const paceSampleMs = 100;

export interface HeldJobsOptions {
  readonly pace: Pace;
  readonly hasFreeSlot: () => boolean;
  /** How long a job may be held, if the user has set it. */
  readonly ttlMs: number | undefined;
  /** The time of a job has come, or is over. */
  readonly onTime: () => void;
  /** These jobs are held no longer: they go back to the database. */
  readonly onReturn: (unstarted: Unstarted) => void;
  /** A job that could have started was held for as long as the user allows. */
  readonly onExpired: () => void;
}

/**
 * The jobs that are claimed and not started. Most wait in the buffer for a slot; those under a rate limit wait for their moment. What does
 * not start in time is returned.
 */
export class HeldJobs {
  readonly #options: HeldJobsOptions;
  readonly #buffer = new Buffer();
  readonly #timed: TimedStarts;
  /** When those start of whose claim some are added later. */
  readonly #startById = new Map<string, JobStart>();
  readonly #watch: HoldWatch;
  #returns = 0;
  /** Since when there has been one to start, or since the pace last heard of them; and how many were started since. */
  #readyAt: number | undefined;
  #starts = 0;

  constructor(options: HeldJobsOptions) {
    const { pace, hasFreeSlot, ttlMs } = options;
    this.#options = options;
    this.#timed = new TimedStarts(options.onTime);
    this.#watch = new HoldWatch({
      held: () => this.#buffer,
      hasFreeSlot,
      ttlMs,
      onStall: () => {
        pace.observeStall(monotonicMs());
        this.#returnAll();
      },
      onOverdue: (before) => this.#returnOverdue(before),
    });
  }

  get size(): number {
    return this.#buffer.size + this.#timed.size;
  }

  /** Jobs that wait for a slot, or for their queue. */
  get buffered(): number {
    return this.#buffer.size;
  }

  /** Jobs that need only a slot. */
  get ready(): number {
    return this.#buffer.ready;
  }

  /** Jobs that wait for their moment. */
  get timed(): number {
    return this.#timed.size;
  }

  /** So many jobs with a moment of their own need only slots that more would miss theirs. */
  get isCrowded(): boolean {
    return this.lateness.isEnough(this.#timed.size) && this.#timed.areAllDue;
  }

  /** How much more time the starts of tasks need than their rates allow. */
  get lateness(): Lateness {
    return this.#timed.lateness;
  }

  /** How often jobs that could have started were returned. What was claimed before that and arrives after it would overtake them. */
  get returns(): number {
    return this.#returns;
  }

  jobs(): Job[] {
    return this.#timed.size > 0 ? [...this.#timed.jobs(), ...this.#buffer.jobs()] : this.#buffer.jobs();
  }

  /** When these jobs start, once each of them is added. */
  expect(jobs: readonly Job[], starts: ReadonlyMap<string, JobStart>): void {
    for (const { id } of jobs) {
      const start = starts.get(id);
      if (start) this.#startById.set(id, start);
    }
  }

  /** `starts` says when they start, where that is given. */
  add(jobs: readonly Job[], starts?: ReadonlyMap<string, JobStart>): void {
    const claimedAt = monotonicMs();
    for (const job of jobs) {
      const start = starts?.get(job.id) ?? this.#takeExpected(job.id);
      if (start) this.#timed.add(job, start);
      else this.#buffer.add(job, claimedAt);
    }
    this.#noticeReady();
  }

  /** Watches that nothing is held for long. */
  watch(): void {
    this.#watch.watch();
  }

  /** The next job that needs only a slot. */
  takeReady(): Job | undefined {
    return this.#buffer.take();
  }

  /** The next job whose moment has come. */
  takeTimed(): Job | undefined {
    return this.#timed.take();
  }

  /** Returns the jobs that missed their moment; true if there are any. */
  returnMissed(): boolean {
    const missed = this.#timed.takeMissed();
    if (missed.jobs.length === 0) return false;
    // One at a time is claimed for the next slot that is freed; several were claimed ahead.
    if (missed.jobs.length > 1) this.lateness.missedAhead(missed.jobs.length);
    // Slots were not freed as fast as before, or we were late.
    if (missed.jobs.length === 1 || this.#options.hasFreeSlot()) this.#timed.late(missed.jobs);
    else if (this.lateness.ahead === 0) this.#options.pace.observeStall(monotonicMs());
    this.#options.onReturn(missed);
    return true;
  }

  /** Sets the timer for the next moment. */
  awaitMoment(): void {
    this.#timed.watch(this.#options.hasFreeSlot());
  }

  /** A job was started. */
  started(at: number): void {
    this.#watch.started(at);
    this.#starts++;
    if (this.#buffer.ready === 0 || at - this.#readyAt! >= paceSampleMs) this.#tellPace(at);
  }

  /** A started job has ended. Gives its queue if nothing more of it is held, so that it can be released. */
  ended(job: Job): number | null {
    if (job.job_queue_id === null) return null;
    const queueId = this.#buffer.ended(job);
    if (queueId === null) this.#noticeReady();
    return queueId;
  }

  /** Returns the jobs for which it is true. */
  returnWhere(isMeant: (job: Job) => boolean): void {
    const returned = join(this.#timed.takeWhere(isMeant), this.#buffer.takeWhere(isMeant));
    this.#tellPace(monotonicMs());
    this.#options.onReturn(returned);
  }

  takeAll(): Unstarted {
    const all = join(
      this.#timed.takeWhere(() => true),
      this.#buffer.drain(),
    );
    this.#tellPace(monotonicMs());
    return all;
  }

  /** Ends the timers. */
  close(): void {
    this.#watch.close();
    this.#timed.close();
  }

  #noticeReady(): void {
    if (this.#buffer.ready > 0) this.#readyAt ??= monotonicMs();
  }

  #tellPace(now: number): void {
    if (this.#readyAt !== undefined) this.#options.pace.observeStarts(this.#starts, now - this.#readyAt);
    this.#readyAt = this.#buffer.ready > 0 ? now : undefined;
    this.#starts = 0;
  }

  #takeExpected(id: string): JobStart | undefined {
    if (this.#startById.size === 0) return undefined;
    const start = this.#startById.get(id);
    this.#startById.delete(id);
    return start;
  }

  #returnOverdue(before: { readonly ready: number; readonly waiting: number }): void {
    if (this.#buffer.readySince <= before.ready) {
      this.#options.onExpired();
      this.#returnAll();
      return;
    }
    // What waits for its queue waits for a job that takes long.
    this.#options.pace.observeSlowQueue(monotonicMs());
    this.#options.onReturn(this.#buffer.takeClaimedBefore(before));
  }

  /** All of it, even if only the oldest was held for too long: the others would overtake those. */
  #returnAll(): void {
    this.#returns++;
    this.#options.onReturn(this.takeAll());
  }
}

function join(some: Unstarted, others: Unstarted): Unstarted {
  if (some.jobs.length === 0) return others;
  return { jobs: [...some.jobs, ...others.jobs], queueIds: [...some.queueIds, ...others.queueIds] };
}
