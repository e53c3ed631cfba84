import type { Job } from "../../job.ts";
import type { WorkerPool } from "../../worker.ts";
import type { PoolInterceptors } from "../pool-hooks.ts";
import type { CancelWatch } from "../run/cancel-watch.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { Slot } from "../run/slot.ts";
import type { JobStart } from "../run/timed-starts.ts";
import type { QueueNotices } from "../settle/queue-notices.ts";
import type { WriteBack } from "../settle/write-back.ts";
import type { LocalQueueView } from "./local-queue.ts";
import { Overlaps } from "./overlaps.ts";
import { PayloadReader, type PayloadReaderOptions } from "./payload-reader.ts";

/** A job whose earlier run goes on here is left to others for this long. */
const overlapRestMs = 10_000;

export interface AdmissionOptions extends Pick<PayloadReaderOptions, "database" | "outage" | "strays"> {
  readonly workerPool: WorkerPool;
  readonly slots: readonly Slot[];
  readonly dispatcher: Dispatcher;
  readonly writeBack: WriteBack;
  readonly interceptors?: PoolInterceptors | undefined;
  readonly localQueue: LocalQueueView | undefined;
  readonly queueNotices: QueueNotices | undefined;
  readonly cancels: CancelWatch | undefined;
  /** False once nothing may be claimed any more. */
  readonly isOpen: () => boolean;
  /** There may be room for other jobs. */
  readonly onRoom: () => void;
  /** A claim brought fewer jobs than there was room for. */
  readonly onShortage: () => void;
}

/** What a claim brought. */
export interface Claimed {
  readonly jobs: readonly Job[];
  /** How many jobs the claim asked for. */
  readonly wanted: number;
  /** The size of the payloads that it brought. */
  readonly bytes: number;
  /** Jobs whose payloads are too large for a claim: still to be read. */
  readonly unread: ReadonlySet<Job>;
  /** When jobs under a rate start. */
  readonly starts: ReadonlyMap<string, JobStart> | undefined;
}

/** Takes claimed jobs to the dispatcher: large payloads are read first, and jobs that came too late or overlap with an earlier run are returned. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #reader: PayloadReader;
  readonly #overlaps: Overlaps;
  #returnsBefore = 0;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const { slots, dispatcher, writeBack, onRoom } = options;
    this.#reader = new PayloadReader({
      ...options,
      onRead: (jobs, bytes) => {
        this.#enter(jobs, bytes);
        onRoom();
      },
      isWaiting: (job) => dispatcher.unstarted().includes(job),
      onReturn: (jobs) => writeBack.returnUnstarted({ jobs, queueIds: [] }),
    });
    this.#overlaps = new Overlaps(() => [
      // What its own transaction has completed is over as far as its queue is concerned: the transaction has released it.
      ...slots.flatMap(({ run }) => (run && !run.completion ? [run.job] : [])),
      ...dispatcher.unstarted(),
      ...this.#reader.jobs(),
    ]);
  }

  /** Jobs that are ours and whose payload is still being read. */
  reading(): Job[] {
    return this.#reader.jobs();
  }

  /** How much room they will need. */
  get load(): number {
    return this.#reader.load;
  }

  /** A job was started. */
  noticeStart(): void {
    this.#reader.noticeStart();
  }

  /** A claim begins. */
  claiming(): void {
    this.#returnsBefore = this.#options.dispatcher.returns;
  }

  admit({ jobs, wanted, bytes, unread, starts }: Claimed): void {
    const { localQueue, queueNotices, dispatcher, writeBack, cancels, onRoom, onShortage } = this.#options;
    queueNotices?.claimed(jobs);
    localQueue?.claimed(jobs, wanted, onRoom);
    if (dispatcher.returns !== this.#returnsBefore) {
      writeBack.returnUnstarted({ jobs, queueIds: queuesOf(jobs) });
      return;
    }
    const isEntering = this.#mayEnter(jobs);
    const entering = isEntering ? this.#withoutOverlaps(jobs) : jobs;
    if (unread.size > 0 && isEntering) {
      // Some of them enter later.
      if (starts) dispatcher.expect(entering, starts);
      this.#enter(this.#reader.take(entering, unread), bytes);
    } else {
      this.#enter(entering, bytes, starts);
    }
    cancels?.claimed(jobs);
    if (jobs.length < wanted && isEntering) onShortage();
  }

  /** Returns what is still being read. */
  close(): void {
    const jobs = this.#reader.close();
    this.#options.writeBack.returnUnstarted({ jobs, queueIds: queuesOf(jobs) });
  }

  /** Returns jobs that would run beside an earlier run. Their queues stay locked until it has ended, so nothing claims them in vain. */
  #withoutOverlaps(claimed: readonly Job[]): readonly Job[] {
    const { writeBack, dispatcher, slots } = this.#options;
    const overlap = this.#overlaps.find(claimed);
    if (!overlap) return claimed;
    const ids = new Set(overlap.again.jobs.map(({ id }) => id));
    for (const { run } of slots) if (run && ids.has(run.job.id)) dispatcher.lose(run.job);
    writeBack.returnUnstarted(overlap.again, overlapRestMs);
    writeBack.returnUnstarted({ jobs: overlap.behind, queueIds: [] });
    return overlap.clear;
  }

  /** False if they were claimed under an id that was taken for dead meanwhile, or after we have closed. */
  #mayEnter(jobs: readonly Job[]): boolean {
    const { isOpen, workerPool } = this.#options;
    return isOpen() && (!jobs[0] || jobs[0].locked_by === workerPool.id);
  }

  #enter(jobs: readonly Job[], bytes: number, starts?: ReadonlyMap<string, JobStart>): void {
    const { interceptors, localQueue, dispatcher, writeBack } = this.#options;
    if (!this.#mayEnter(jobs)) {
      writeBack.returnUnstarted({ jobs, queueIds: queuesOf(jobs) });
      return;
    }
    interceptors?.onClaimed?.(jobs);
    dispatcher.accept(jobs, bytes, starts);
    if (dispatcher.waiting > 0) localQueue?.holding();
  }
}

function queuesOf(jobs: readonly Job[]): number[] {
  return [...new Set(jobs.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null))];
}
