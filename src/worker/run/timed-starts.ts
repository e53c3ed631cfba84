import type { Job } from "../../job.ts";
import { clearTimeout, monotonicMs, setTimeout } from "../../util/timers.ts";
import type { Unstarted } from "../claim/buffer.ts";
import { Lateness } from "../claim/lateness.ts";

/** When a job may start, at the earliest and at the latest, on the monotonic clock. */
export interface JobStart {
  readonly at: number;
  readonly latestAt: number;
  /** Later than that is extra time, which was asked for because earlier starts were missed. */
  readonly intendedUntil: number;
}

interface Timed {
  readonly job: Job;
  readonly start: JobStart;
}

/** Jobs that are claimed and start at a given moment: a rate limit has a token for them then, and no longer. */
export class TimedStarts {
  readonly lateness = new Lateness();
  readonly #onTime: () => void;
  /** By the time of their start, from `#first` on. */
  #waiting: Timed[] = [];
  #first = 0;
  /** No time is over before that. */
  #latestAt = Infinity;
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Infinity;

  /** `onTime` is called when one may start, or has missed its time. */
  constructor(onTime: () => void) {
    this.#onTime = onTime;
  }

  get size(): number {
    return this.#waiting.length - this.#first;
  }

  /** None of them waits for its moment: they need only slots. */
  get areAllDue(): boolean {
    const last = this.#waiting.at(-1);
    return last !== undefined && last.start.at <= monotonicMs();
  }

  jobs(): Job[] {
    return this.#waiting.slice(this.#first).map(({ job }) => job);
  }

  add(job: Job, start: JobStart): void {
    if (this.size === 0) this.lateness.pace.begin(monotonicMs());
    this.#latestAt = Math.min(this.#latestAt, start.latestAt);
    let place = this.#waiting.length;
    while (place > this.#first && this.#waiting[place - 1]!.start.at > start.at) place--;
    if (place === this.#waiting.length) this.#waiting.push({ job, start });
    else this.#waiting.splice(place, 0, { job, start });
  }

  /** The next job that may start now. Those whose time is over have been taken out. */
  take(): Job | undefined {
    const now = monotonicMs();
    const next = this.#waiting[this.#first];
    if (!next || next.start.at > now || next.start.latestAt < now) return undefined;
    this.#first++;
    this.lateness.pace.started(now);
    if (this.#first === this.#waiting.length) {
      this.lateness.pace.end(now);
      this.#keep([]);
    }
    if (now <= next.start.intendedUntil) this.lateness.keptTime(next.job.task_id);
    return next.job;
  }

  /** Those whose time is over. */
  takeMissed(): Unstarted {
    const now = monotonicMs();
    if (now <= this.#latestAt) return none;
    return this.takeWhere((_, { latestAt }) => latestAt < now);
  }

  /** These would have needed more time. */
  late(jobs: readonly Job[]): void {
    for (const taskId of new Set(jobs.map(({ task_id }) => task_id))) this.lateness.missed(taskId);
  }

  takeWhere(isMeant: (job: Job, start: JobStart) => boolean): Unstarted {
    if (this.size === 0) return none;
    const jobs: Job[] = [];
    const kept: Timed[] = [];
    for (const timed of this.#waiting.slice(this.#first)) {
      if (isMeant(timed.job, timed.start)) jobs.push(timed.job);
      else kept.push(timed);
    }
    this.#keep(kept);
    return { jobs, queueIds: jobs.flatMap((job) => (job.job_queue_id === null ? [] : [job.job_queue_id])) };
  }

  /** Waits for the next moment at which something is to be done. With every slot busy, that is when a time is over. */
  watch(hasFreeSlot: boolean): void {
    const next = this.#waiting[this.#first];
    const at = !next ? Infinity : hasFreeSlot ? Math.min(next.start.at, this.#latestAt) : this.#latestAt;
    if (at === this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = at;
    if (at === Infinity) return;
    const rest = Math.max(0, Math.ceil(at - monotonicMs()));
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity;
      this.#onTime();
    }, rest);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #keep(waiting: Timed[]): void {
    this.#waiting = waiting;
    this.#first = 0;
    this.#latestAt = waiting.reduce((at, { start }) => Math.min(at, start.latestAt), Infinity);
  }
}

const none: Unstarted = { jobs: [], queueIds: [] };
