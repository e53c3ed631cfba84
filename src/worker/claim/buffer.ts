import type { Job } from "../../job.ts";
import { Fifo } from "../../util/fifo.ts";

/** What this pool holds of one named queue: one job that may run, and those that come after it. */
interface QueueRun {
  readonly claimedAt: number;
  isHeadStarted: boolean;
  readonly waiting: Fifo<Job>;
}

/** Jobs that were claimed at the same time and are ready, as a stretch of the line. */
interface Stretch {
  readonly claimedAt: number;
  count: number;
}

/** Jobs taken out of the buffer, and the queues without other held jobs. */
export interface Unstarted {
  readonly jobs: readonly Job[];
  readonly queueIds: readonly number[];
}

/**
 * Jobs that are claimed and not started. Of each named queue only one is ever out or ready at a time, so a pool may claim a
 * run of a queue's jobs and still work through them strictly one after the other.
 */
export class Buffer {
  readonly #ready = new Fifo<Job>();
  readonly #stretches: Stretch[] = [];
  readonly #runByQueue = new Map<number, QueueRun>();
  #size = 0;

  /** Jobs not started, those that wait for their queue included. */
  get size(): number {
    return this.#size;
  }

  /** Jobs that could start now. */
  get ready(): number {
    return this.#ready.length;
  }

  /** When the oldest job was claimed that could start; Infinity if there is none. */
  get readySince(): number {
    return this.#stretches[0]?.claimedAt ?? Infinity;
  }

  /** When the oldest job was claimed that waits for its queue; Infinity if there is none. */
  get waitingSince(): number {
    if (this.#size === this.#ready.length) return Infinity;
    let since = Infinity;
    for (const { claimedAt, waiting } of this.#runByQueue.values()) {
      if (waiting.length > 0 && claimedAt < since) since = claimedAt;
    }
    return since;
  }

  add(job: Job, claimedAt: number): void {
    this.#size++;
    const run = job.job_queue_id === null ? undefined : this.#runByQueue.get(job.job_queue_id);
    if (run) {
      run.waiting.push(job);
      return;
    }
    if (job.job_queue_id !== null) {
      this.#runByQueue.set(job.job_queue_id, { claimedAt, isHeadStarted: false, waiting: new Fifo() });
    }
    this.#pushReady(job, claimedAt);
  }

  /** All jobs that are not started. */
  jobs(): Job[] {
    return [...this.#ready.items(), ...[...this.#runByQueue.values()].flatMap((run) => run.waiting.items())];
  }

  /** The next job to start. */
  take(): Job | undefined {
    const job = this.#shift();
    const run = job && job.job_queue_id !== null ? this.#runByQueue.get(job.job_queue_id) : undefined;
    if (run) run.isHeadStarted = true;
    return job;
  }

  /** Notes that a started job has ended; gives its queue if nothing more of it is held, so that it can be released. */
  ended(job: Job): number | null {
    if (job.job_queue_id === null) return null;
    const run = this.#runByQueue.get(job.job_queue_id);
    const next = run?.waiting.shift();
    if (run && next) {
      run.isHeadStarted = false;
      this.#ready.pushFront(next); // it is older than what was claimed after it
      this.#stretches.unshift({ claimedAt: run.claimedAt, count: 1 });
      return null;
    }
    this.#runByQueue.delete(job.job_queue_id);
    return job.job_queue_id;
  }

  /** Takes out everything that is not started. */
  drain(): Unstarted {
    return this.takeClaimedBefore({ ready: Infinity, waiting: Infinity });
  }

  /** Takes out what was claimed up to then and is not started; with a job that could start, all that waits behind it. */
  takeClaimedBefore(before: { readonly ready: number; readonly waiting: number }): Unstarted {
    const jobs: Job[] = [];
    const queueIds: number[] = [];
    while (this.#ready.length > 0 && this.readySince <= before.ready) {
      const job = this.#shift()!;
      jobs.push(job);
      if (job.job_queue_id === null) continue;
      jobs.push(...this.#takeWaiting(this.#runByQueue.get(job.job_queue_id)!));
      this.#runByQueue.delete(job.job_queue_id);
      queueIds.push(job.job_queue_id);
    }
    for (const run of this.#runByQueue.values()) {
      if (run.claimedAt <= before.waiting) jobs.push(...this.#takeWaiting(run));
    }
    return { jobs, queueIds };
  }

  /** Takes out the jobs for which it is true and that are not started, and with each one all of its queue, so that nothing overtakes. */
  takeWhere(isMeant: (job: Job) => boolean): Unstarted {
    const queueIds = new Set(
      this.jobs()
        .filter((job) => job.job_queue_id !== null && isMeant(job))
        .map((job) => job.job_queue_id),
    );
    const jobs: Job[] = [];
    const released: number[] = [];
    for (let left = this.#ready.length; left > 0; left--) {
      const claimedAt = this.readySince;
      const job = this.#shift()!;
      const queueId = job.job_queue_id;
      if (queueId === null ? !isMeant(job) : !queueIds.has(queueId)) {
        this.#size++;
        this.#pushReady(job, claimedAt);
        continue;
      }
      jobs.push(job);
      if (queueId === null) continue;
      jobs.push(...this.#takeWaiting(this.#runByQueue.get(queueId)!));
      this.#runByQueue.delete(queueId);
      released.push(queueId);
    }
    for (const [queueId, run] of this.#runByQueue) if (queueIds.has(queueId)) jobs.push(...this.#takeWaiting(run));
    return { jobs, queueIds: released };
  }

  #pushReady(job: Job, claimedAt: number): void {
    this.#ready.push(job);
    const last = this.#stretches.at(-1);
    if (last?.claimedAt === claimedAt) last.count++;
    else this.#stretches.push({ claimedAt, count: 1 });
  }

  #shift(): Job | undefined {
    const job = this.#ready.shift();
    if (!job) return undefined;
    this.#size--;
    const [first] = this.#stretches;
    if (first && --first.count === 0) this.#stretches.shift();
    return job;
  }

  #takeWaiting(run: QueueRun): Job[] {
    const jobs = run.waiting.drain();
    this.#size -= jobs.length;
    return jobs;
  }
}
