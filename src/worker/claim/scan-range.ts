import type { ClaimResultRow, Mark } from "../../db/statements/claim.ts";
import { Marks } from "./marks.ts";
import { ScanBudget } from "./scan-budget.ts";

/** Where a claim scans. */
export interface ScanRange {
  /** Where to start in each priority; empty for a full scan. */
  readonly marks: readonly Mark[];
  readonly withQueues: boolean;
}

/**
 * Decides where the next claim scans. It scans from the start as long as that is cheap. Where it is not (finished rows that cannot be vacuumed), it
 * starts at the marks of earlier claims; a full scan then follows as soon as its budget allows, for jobs that came in behind the marks. Named queues are
 * left out in the same way.
 */
export class ScanRanges {
  readonly #marks = new Marks();
  readonly #fullScans = new ScanBudget();
  readonly #queueScans = new ScanBudget();
  /** A claim from the marks may have passed over jobs behind them, and one without queues over theirs. */
  #owesFullScan = false;
  #owesQueueScan = false;

  /** The last claim did not scan everywhere. */
  get hasLeftOut(): boolean {
    return this.#owesFullScan || this.#owesQueueScan;
  }

  next(now: number): ScanRange {
    return {
      marks: this.#marksToStartAt(now),
      withQueues: !this.#queueScans.isCostly || now >= this.#queueScans.dueAt,
    };
  }

  /** Learns from a claim's response. Returns when to scan what the claim left out; Infinity if that is nothing. */
  learn(
    now: number,
    { marks, withQueues }: ScanRange,
    row: Pick<ClaimResultRow, "marks" | "tasks_ms" | "queues_ms">,
    claimed: number,
  ): number {
    const isFullScan = marks.length === 0;
    if (isFullScan) this.#fullScans.spend(now, row.tasks_ms, claimed);
    if (withQueues) this.#queueScans.spend(now, row.queues_ms, claimed);
    this.#owesFullScan = !isFullScan;
    this.#owesQueueScan = !withQueues;
    this.#marks.learn(JSON.parse(row.marks));
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
