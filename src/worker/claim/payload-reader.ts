import type { Database } from "../../db/database.ts";
import { isSilence, isTransient } from "../../db/sqlstate.ts";
import { type PayloadRow, readPayload, readPayloads } from "../../db/statements/claim.ts";
import { toError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { backoffMs } from "../../util/backoff.ts";
import { Pulse } from "../../util/pulse.ts";
import { sleep } from "../../util/sleep.ts";
import type { Outage } from "../settle/outage.ts";
import type { Strays } from "../settle/strays.ts";
import { reasonNotToParse, reasonNotToRead } from "./payload-memory.ts";
import { refuse } from "./unreadable.ts";

export interface PayloadReaderOptions {
  readonly database: Pick<Database, "run">;
  readonly outage: Outage;
  readonly strays: Strays;
  /** These jobs, all of one queue or one without, are ready to run, or to fail with the reason why they cannot be read. */
  readonly onRead: (jobs: readonly Job[], bytes: number) => void;
  /** Whether a job that was handed on has not started yet. */
  readonly isWaiting: (job: Job) => boolean;
  /** These jobs of a queue that we hold would have to wait for long: they go back in line. */
  readonly onReturn: (jobs: readonly Job[]) => void;
  /** Payloads of more bytes than this are read alone. */
  readonly smallBytes?: number;
  /** Payloads of more bytes than this are not read at all. */
  readonly maxBytes?: number;
}

/** Jobs that enter the buffer together: one without a queue, or all of one queue that a claim brought. */
interface Group {
  jobs: Job[];
  readonly unread: Set<Job>;
  bytes: number;
}

interface Entry {
  readonly job: Job;
  readonly group: Group;
  /** How often the connection broke while its payload was read. */
  breaks: number;
  /** Known once it turned out to be big. */
  bytes: number;
}

const defaultSmallBytes = 256 * 1024;
const batchSize = 20;
/** Big payloads that may wait here; beyond this nothing more is claimed. */
const maxBig = 10;
/** How often to look, at the least, whether the last big one has started. */
const recheckMs = 1_000;
/** A payload that breaks its connection this often is at fault itself. */
const maxBreaks = 3;
const backoff = { minMs: 100, maxMs: 5_000, factor: 1.5 };

/**
 * Reads the payloads that a claim left out because they are large, while the claimer goes on. Those of a moderate size are read
 * some at a time, the big ones one after the other on a line of their own, each with a deadline that follows its size.
 */
export class PayloadReader {
  readonly #options: PayloadReaderOptions;
  readonly #stop = new AbortController();
  readonly #groups = new Set<Group>();
  #small: Entry[] = [];
  #big: Entry[] = [];
  #isReadingSmall = false;
  #isReadingBig = false;
  /** The last big one that was handed on. */
  #handedOn: Job | undefined;
  readonly #started = new Pulse();

  constructor(options: PayloadReaderOptions) {
    this.#options = options;
  }

  /** Jobs that are held here. */
  jobs(): Job[] {
    return [...this.#groups].flatMap(({ jobs }) => jobs);
  }

  /** How many jobs will soon enter the buffer; Infinity if no more should come. Big payloads take their time, so they do not count. */
  get load(): number {
    const big = [...this.#groups].filter((group) => this.#big.some((entry) => entry.group === group)).length;
    return big > maxBig ? Infinity : this.jobs().length - big;
  }

  /** Keeps the jobs that are to be read, and those of their queues, and gives the others. */
  take(jobs: readonly Job[], unread: ReadonlySet<Job>): Job[] {
    const queues = new Set(jobs.filter((job) => unread.has(job)).map(({ job_queue_id }) => job_queue_id));
    const groupByQueue = new Map<number, Group>();
    const others: Job[] = [];
    for (const job of jobs) {
      const queueId = job.job_queue_id;
      if (!unread.has(job) && (queueId === null || !queues.has(queueId))) {
        others.push(job);
        continue;
      }
      const group: Group = (queueId !== null && groupByQueue.get(queueId)) || { jobs: [], unread: new Set(), bytes: 0 };
      if (queueId !== null) groupByQueue.set(queueId, group);
      group.jobs.push(job);
      this.#groups.add(group);
      if (!unread.has(job)) continue;
      group.unread.add(job);
      this.#small.push({ job, group, breaks: 0, bytes: 0 });
    }
    void this.#readSmall();
    return others;
  }

  /** A job has started. */
  noticeStart(): void {
    if (this.#big.length > 0) this.#started.nudge();
  }

  /** Reads no further, and gives what is not read. */
  close(): Job[] {
    this.#stop.abort();
    const jobs = this.jobs();
    this.#groups.clear();
    this.#small = [];
    this.#big = [];
    return jobs;
  }

  async #readSmall(): Promise<void> {
    if (this.#isReadingSmall) return;
    this.#isReadingSmall = true;
    // Claims under different ids are read apart.
    for (let batch = this.#nextBatch(); batch.length > 0; batch = this.#nextBatch()) {
      await this.#measure(batch, this.#options.smallBytes ?? defaultSmallBytes);
      for (const group of new Set(batch.map((entry) => entry.group))) this.#handOn(group);
    }
    this.#isReadingSmall = false;
  }

  #nextBatch(): Entry[] {
    const poolId = this.#small[0]?.job.locked_by;
    const end = this.#small.findIndex(({ job }) => job.locked_by !== poolId);
    return this.#small.splice(0, Math.min(batchSize, end < 0 ? batchSize : end));
  }

  /** Reads the batch, as far as it is small, and tries until the database answers. */
  async #measure(batch: readonly Entry[], atMost: number): Promise<void> {
    const { database, outage } = this.#options;
    const params = { poolId: batch[0]!.job.locked_by!, jobIds: batch.map(({ job }) => job.id), atMost };
    for (let attempt = 0; !this.#stop.signal.aborted; attempt++) {
      try {
        const rows = await database.run(readPayloads, params, this.#stop.signal);
        outage.well(this);
        this.#sort(batch, rows);
        return;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        // A line so slow brings nothing unless it is asked for alone, with a deadline for its size.
        if (isSilence(error)) params.atMost = 0;
        if (!isTransient(error)) return await this.#measureEach(batch, atMost, error);
        outage.trouble(this, error);
        await sleep(backoffMs(backoff, attempt), this.#stop.signal);
      }
    }
  }

  /** One of the batch is too much for the database; the others must not suffer. */
  async #measureEach(batch: readonly Entry[], atMost: number, error: unknown): Promise<void> {
    if (batch.length === 1) this.#fail(batch[0]!, toError(error));
    else for (const entry of batch) await this.#measure([entry], atMost);
  }

  #sort(batch: readonly Entry[], rows: readonly PayloadRow[]): void {
    const rowById = new Map(rows.map((row) => [row.id, row]));
    for (const entry of batch) {
      const row = rowById.get(entry.job.id);
      if (!row) this.#lose(entry);
      else if (row.payload !== null) this.#fill(entry, row.payload);
      else {
        entry.bytes = row.bytes;
        this.#big.push(entry);
      }
    }
    void this.#readBig();
  }

  async #readBig(): Promise<void> {
    if (this.#isReadingBig) return;
    this.#isReadingBig = true;
    for (let entry = this.#big[0]; entry; entry = this.#big[0]) {
      await this.#awaitStart();
      if (this.#stop.signal.aborted) break;
      await this.#readAlone(entry);
      this.#handedOn = entry.job;
      this.#big = this.#big.filter((other) => other !== entry);
      this.#handOn(entry.group);
    }
    this.#isReadingBig = false;
  }

  /** Of the big ones no more than one is in memory before it starts. */
  async #awaitStart(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#handedOn && this.#options.isWaiting(this.#handedOn) && !signal.aborted) {
      await this.#started.wait(recheckMs, signal);
    }
  }

  async #readAlone(entry: Entry): Promise<void> {
    const { job, bytes } = entry;
    const reason = reasonNotToRead(bytes, this.#options.maxBytes);
    if (reason) return this.#fail(entry, new Error(reason));
    try {
      const params = { poolId: job.locked_by!, jobId: job.id, bytes };
      const [row] = await this.#options.database.run(readPayload, params, this.#stop.signal);
      if (!row) return this.#lose(entry);
      const obstacle = reasonNotToParse(row.payload);
      if (obstacle) this.#fail(entry, new Error(obstacle));
      else this.#fill(entry, row.payload);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const mayPass = isTransient(error) && !isSilence(error);
      if (!mayPass || ++entry.breaks >= maxBreaks) {
        const { message } = toError(error);
        this.#fail(entry, new Error(`The payload of ${bytes} bytes could not be read: ${message}`, { cause: error }));
        return;
      }
      // Once the database answers again, it is tried once more.
      this.#small.push(entry);
      void this.#readSmall();
    }
  }

  #fill(entry: Entry, text: string): void {
    try {
      Object.assign(entry.job, { payload: JSON.parse(text) });
      entry.group.bytes += text.length;
      entry.group.unread.delete(entry.job);
    } catch (error) {
      this.#fail(entry, toError(error));
    }
  }

  #fail({ job, group }: Entry, error: Error): void {
    refuse(job, error);
    group.unread.delete(job);
  }

  /** It is not ours any more; if its queue still is, that is found by looking for strays. */
  #lose({ job, group }: Entry): void {
    group.unread.delete(job);
    group.jobs = group.jobs.filter((other) => other !== job);
    this.#options.strays.expect();
  }

  /** Lets a group go as far as it is read. What a big payload would keep waiting in its queue goes back in line. */
  #handOn(group: Group): void {
    if (!this.#groups.has(group)) return;
    const waiting = group.jobs.findIndex((job) => group.unread.has(job));
    if (waiting < 0) {
      this.#groups.delete(group);
      if (group.jobs.length > 0) this.#options.onRead(group.jobs, group.bytes);
      return;
    }
    if (this.#small.some((entry) => entry.group === group)) return; // there is more to be read soon
    const keep = Math.max(waiting, 1);
    const late = group.jobs.splice(keep);
    this.#big = this.#big.filter(({ job }) => !late.includes(job));
    for (const job of late) group.unread.delete(job);
    if (waiting > 0) {
      this.#groups.delete(group);
      this.#options.onRead(group.jobs, group.bytes);
    }
    if (late.length > 0) this.#options.onReturn(late);
  }
}
