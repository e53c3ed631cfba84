import type { Job } from "../job.ts";
import { Fifo } from "../util/fifo.ts";

/** What this pool holds of one named queue: one job that may run, and those that come after it. */
interface QueueRun {
  isHeadStarted: boolean;
  readonly waiting: Fifo<Job>;
}

/**
 * Jobs that are claimed and not started. Of each named queue only one is ever out or ready at a time, so a pool may claim a
 * run of a queue's jobs and still work through them strictly one after the other.
 */
export class Buffer {
  readonly #ready = new Fifo<Job>();
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

  add(job: Job): void {
    this.#size++;
    if (job.job_queue_id === null) {
      this.#ready.push(job);
      return;
    }
    const run = this.#runByQueue.get(job.job_queue_id);
    if (run) {
      run.waiting.push(job);
      return;
    }
    this.#runByQueue.set(job.job_queue_id, { isHeadStarted: false, waiting: new Fifo() });
    this.#ready.push(job);
  }

  /** All jobs that are not started. */
  jobs(): Job[] {
    return [...this.#ready.items(), ...[...this.#runByQueue.values()].flatMap((run) => run.waiting.items())];
  }

  /** The next job to start. */
  take(): Job | undefined {
    const job = this.#ready.shift();
    if (!job) return undefined;
    this.#size--;
    const run = job.job_queue_id === null ? undefined : this.#runByQueue.get(job.job_queue_id);
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
      return null;
    }
    this.#runByQueue.delete(job.job_queue_id);
    return job.job_queue_id;
  }

  /** Takes out everything that is not started, and names the queues of which nothing is held any more. */
  drain(): { jobs: Job[]; queueIds: number[] } {
    const jobs = this.#ready.drain();
    const queueIds: number[] = [];
    for (const [queueId, run] of this.#runByQueue) {
      jobs.push(...run.waiting.drain());
      if (run.isHeadStarted) continue;
      queueIds.push(queueId);
      this.#runByQueue.delete(queueId);
    }
    this.#size = 0;
    return { jobs, queueIds };
  }
}
