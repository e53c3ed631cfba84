import type { ClaimResultRow, Mark } from "../../db/statements/claim.ts";
import type { Job } from "../../job.ts";
import { Marks } from "./marks.ts";
import { ScanBudget } from "./scan-budget.ts";

/** Where a claim scans. */
export interface ScanRange {
  /** Where to start in each priority; empty for a full scan. */
  readonly marks: readonly Mark[];
  readonly withQueues: boolean;
  /** Queues that this pool has released: even without a search, jobs are taken from them. */
  readonly ownQueues: readonly number[];
}

/** What a claim brought. */
export interface Claimed {
  readonly jobs: readonly Pick<Job, "job_queue_id">[];
  /** As many as it was asked for, so there may be more. */
  readonly isFull: boolean;
}

type Answer = Pick<ClaimResultRow, "marks" | "tasks_ms" | "queues_ms" | "left_queues" | "due_in_ms">;

/** What finding a job may cost where there is a cheaper way, from the marks on. */
const cheapMsPerJob = 0.01;
/** What finding a job in a named queue may cost. There is no other way to it than to wait, so only a scan that finds little is worth that. */
const cheapMsPerQueuedJob = 0.1;
/** More than that are found by a scan. */
const maxOwnQueues = 1_000;

/**
 * Decides where the next claim scans. It scans from the start as long as that is cheap. Where it is not (finished rows that cannot be vacuumed), it
 * starts at the marks of earlier claims; a full scan then follows as soon as its budget allows, for jobs that came in behind the marks. Named queues are
 * left out in the same way, except those that this pool has released: its own runs of a queue must not wait for a budget.
 */
export class ScanRanges {
  readonly #marks = new Marks();
  readonly #fullScans = new ScanBudget(cheapMsPerJob);
  readonly #queueScans = new ScanBudget(cheapMsPerQueuedJob);
  /** Queues that we have released since the last claim began: it may have come too early for them. */
  readonly #released = new Set<number>();
  /** Those that we had released before, and that no claim has visited yet, or not to the end. */
  #toVisit = new Set<number>();
  /** A claim from the marks may have passed over jobs behind them, and one without queues over theirs. */
  #owesFullScan = false;
  #owesQueueScan = false;

  /** The last claim did not scan everywhere. */
  get hasLeftOut(): boolean {
    return this.#owesFullScan || this.#owesQueueScan;
  }

  /** We have released a queue, so its next job can be claimed. */
  released(queueId: number): void {
    if (this.#released.size < maxOwnQueues) this.#released.add(queueId);
  }

  /** Where a claim that begins now scans. */
  next(now: number): ScanRange {
    for (const queueId of this.#released) if (this.#toVisit.size < maxOwnQueues) this.#toVisit.add(queueId);
    this.#released.clear();
    return {
      marks: this.#marksToStartAt(now),
      withQueues: !this.#queueScans.isCostly || now >= this.#queueScans.dueAt,
      ownQueues: [...this.#toVisit],
    };
  }

  /** Learns from a claim's response. Returns when to scan what the claim left out; Infinity if that is nothing. */
  learn(now: number, { marks, withQueues }: ScanRange, answer: Answer, claimed: Claimed): number {
    const isFullScan = marks.length === 0;
    const queueIds = claimed.jobs.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null);
    if (isFullScan) this.#fullScans.spend(now, answer.tasks_ms, claimed.jobs.length);
    if (withQueues) this.#queueScans.spend(now, answer.queues_ms, queueIds.length);
    this.#owesFullScan = !isFullScan;
    this.#owesQueueScan = !withQueues;
    this.#marks.learn(JSON.parse(answer.marks));
    const isContended = answer.due_in_ms !== null && answer.due_in_ms <= 0;
    if (!withQueues) this.#toVisit = new Set(answer.left_queues);
    else if (claimed.isFull || isContended) for (const queueId of queueIds) this.#toVisit.delete(queueId);
    else this.#toVisit.clear();
    return Math.min(isFullScan ? Infinity : this.#fullScans.dueAt, withQueues ? Infinity : this.#queueScans.dueAt);
  }

  /** Returned jobs may lie behind our marks; scan from the start. */
  startOver(): void {
    this.#marks.clear();
  }

  #marksToStartAt(now: number): readonly Mark[] {
    if (!this.#fullScans.isCostly) return [];
    if (this.#owesFullScan && now >= this.#fullScans.dueAt) return [];
    return this.#marks.list();
  }
}
