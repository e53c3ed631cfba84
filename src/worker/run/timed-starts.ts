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
  #waiting: Timed[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `onTime` is called when one may start, or has missed its time. */
  constructor(onTime: () => void) {
    this.#onTime = onTime;
  }

  get size(): number {
    return this.#waiting.length;
  }

  jobs(): Job[] {
    return this.#waiting.map(({ job }) => job);
  }

  add(job: Job, start: JobStart): void {
    const after = this.#waiting.findIndex((other) => other.start.at > start.at);
    this.#waiting.splice(after < 0 ? this.#waiting.length : after, 0, { job, start });
  }

  /** The next job that may start now. */
  take(): Job | undefined {
    const now = monotonicMs();
    const next = this.#waiting.findIndex(({ start }) => start.at <= now && now <= start.latestAt);
    if (next < 0) return undefined;
    const { job, start } = this.#waiting.splice(next, 1)[0]!;
    if (now <= start.intendedUntil) this.lateness.keptTime(job.task_id);
    return job;
  }

  /** Those whose time is over. */
  takeMissed(): Unstarted {
    const now = monotonicMs();
    const missed = this.takeWhere((_, { latestAt }) => latestAt < now);
    for (const taskId of new Set(missed.jobs.map(({ task_id }) => task_id))) this.lateness.missed(taskId);
    return missed;
  }

  takeWhere(isMeant: (job: Job, start: JobStart) => boolean): Unstarted {
    if (this.#waiting.length === 0) return { jobs: [], queueIds: [] };
    const taken = this.#waiting.filter(({ job, start }) => isMeant(job, start));
    this.#waiting = this.#waiting.filter((timed) => !taken.includes(timed));
    return {
      jobs: taken.map(({ job }) => job),
      queueIds: taken.flatMap(({ job }) => (job.job_queue_id === null ? [] : [job.job_queue_id])),
    };
  }

  /** Waits for the next moment at which something is to be done. With every slot busy, that is when a time is over. */
  watch(hasFreeSlot: boolean): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    let at = Infinity;
    for (const { start } of this.#waiting) at = Math.min(at, hasFreeSlot ? start.at : start.latestAt);
    if (at === Infinity) return;
    this.#timer = setTimeout(() => this.#onTime(), Math.max(0, Math.ceil(at - monotonicMs())));
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
