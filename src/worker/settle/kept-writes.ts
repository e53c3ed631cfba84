import { type Bound, bind, type Statement } from "../../db/statement.ts";
import type { RuledJob } from "../../db/statements/control.ts";
import {
  completeJobsKept,
  failJobsKept,
  type KeptEnd,
  ruleJobsKept,
  toKeptTasks,
} from "../../db/statements/history.ts";
import type { Release, UnwrittenRow } from "../../db/statements/settle.ts";
import { printError } from "../../error-print.ts";
import type { KeepRule, KeepRules } from "../../kept-history.ts";
import { stackFrames } from "../../stack-frames.ts";
import type { Outcome } from "../run/outcome.ts";
import type { EndedJob } from "./ended-job.ts";

/** A statement that settles, and what comes first. */
export interface Settling extends Bound<UnwrittenRow> {
  /** Sent first, while the jobs are locked: others must not start in between. */
  readonly first?: Bound<object>;
  /** Waited for first. */
  readonly opening?: Promise<void> | undefined;
}

type Batch<Ended extends Outcome> = readonly EndedJob<Ended>[];
type Succeeded = Extract<Outcome, { kind: "succeeded" }>;
type Unsuccessful = Exclude<Outcome, { kind: "succeeded" }>;

/** The statements that settle and keep history. Each gives undefined if nothing is kept of these jobs: then the plain statement serves. */
export class KeptWrites {
  readonly #rules: KeepRules;

  constructor(rules: KeepRules) {
    this.#rules = rules;
  }

  complete(ended: Batch<Succeeded>, release: Release): Settling | undefined {
    const rules = this.#rulesFor(ended);
    if (!rules) return undefined;
    const sorted = ended.toSorted((a, b) => Number(a.jobId) - Number(b.jobId));
    const areFirst = sorted.every(({ outcome }) => outcome.job.attempts === 1);
    const hasResults = sorted.some(({ outcome }) => outcome.result !== undefined);
    return this.#settling(completeJobsKept, {
      poolId: ended[0]!.poolId,
      jobIds: sorted.map(({ jobId }) => jobId),
      attempts: areFirst ? null : sorted.map(({ outcome }) => outcome.job.attempts),
      runs: sorted.map(({ durationMs }) => Math.round(durationMs)),
      results: hasResults ? sorted.map(({ outcome }) => outcome.result ?? null) : null,
      kept: toKeptTasks(rules, "completedDays", this.#rules.redact),
      ...release,
    });
  }

  fail(ended: Batch<Extract<Outcome, { kind: "failed" }>>, release: Release, isInDoubt: boolean): Settling | undefined {
    const rules = this.#rulesFor(ended);
    if (!rules) return undefined;
    const jobs = ended.map((each) => ({ ...toEnd(each), payload: each.outcome.remaining ?? null }));
    const kept = toKeptTasks(rules, "failedDays", this.#rules.redact);
    return this.#settling(failJobsKept, { poolId: ended[0]!.poolId, jobs, kept, isInDoubt, ...release });
  }

  rule<Ruled extends Unsuccessful>(
    ended: Batch<Ruled>,
    toRuled: (outcome: Ruled) => RuledJob,
    release: Release,
    isInDoubt: boolean,
  ): Settling | undefined {
    const rules = this.#rulesFor(ended);
    if (!rules) return undefined;
    const jobs = ended.map((each) => ({ ...toEnd(each), ...toRuled(each.outcome) }));
    const kept = toKeptTasks(rules, "failedDays", this.#rules.redact);
    return this.#settling(ruleJobsKept, { poolId: ended[0]!.poolId, jobs, kept, isInDoubt, ...release });
  }

  #settling<Params>(kept: Statement<Params, UnwrittenRow>, params: Params): Settling {
    return { ...bind(kept, params), opening: this.#rules.opening() };
  }

  #rulesFor(ended: readonly EndedJob[]): Map<number, KeepRule> | undefined {
    const rules = new Map<number, KeepRule>();
    let last: number | undefined;
    for (const { outcome } of ended) {
      const { task_id: taskId, task_identifier: task } = outcome.job;
      // Neighbours are mostly of one task.
      if (taskId === last) continue;
      last = taskId;
      if (rules.has(taskId)) continue;
      const rule = this.#rules.of(task);
      if (rule) rules.set(taskId, rule);
    }
    return rules.size > 0 ? rules : undefined;
  }
}

function toEnd({ outcome, durationMs }: EndedJob<Unsuccessful>): KeptEnd {
  const { job, error, text } = outcome;
  return {
    id: job.id,
    attempt: job.attempts,
    error: text,
    payload: null,
    runMs: Math.round(durationMs),
    ...printError(job.task_identifier, error),
    stack: stackFrames(error),
  };
}
