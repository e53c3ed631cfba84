import { bind } from "../../db/statement.ts";
import { type RuledJob, type Ruling, ruleJobs } from "../../db/statements/control.ts";
import { type HeldBack, holdLimits } from "../../db/statements/limits.ts";
import { completeJobs, failJobs, type Release } from "../../db/statements/settle.ts";
import type { KeepRules } from "../../kept-history.ts";
import type { Outcome } from "../run/outcome.ts";
import type { EndedJob } from "./ended-job.ts";
import { KeptWrites, type Settling } from "./kept-writes.ts";

type OutcomeOf<Kind extends Outcome["kind"]> = Extract<Outcome, { kind: Kind }>;

/** What is written with one statement. */
export interface LaneSpec<Ended extends Outcome> {
  /** The statement for jobs that are settled together. `isInDoubt` says that an earlier try may have gone through. */
  readonly settle: (ended: readonly EndedJob<Ended>[], release: Release, isInDoubt: boolean) => Settling;
  /** What the pool reports to have tried if the database keeps refusing. */
  readonly action: string;
  readonly delayMs: number;
}

export interface LaneDelays {
  readonly completeJobBatchDelay: number;
  readonly failJobBatchDelay: number;
}

export type LaneName = "completing" | "failing" | "ruling";

/** Which lane writes which kind of outcome. */
export const laneByKind = {
  succeeded: "completing",
  failed: "failing",
  backedOff: "ruling",
  gaveUp: "ruling",
  snoozed: "ruling",
  cancelled: "ruling",
} as const satisfies Record<Outcome["kind"], LaneName>;

export type OutcomeIn<Name extends LaneName> = OutcomeOf<
  { [Kind in Outcome["kind"]]: (typeof laneByKind)[Kind] extends Name ? Kind : never }[Outcome["kind"]]
>;

export function makeLaneSpecs(
  delays: LaneDelays,
  keepRules: KeepRules,
): { readonly [Name in LaneName]: LaneSpec<OutcomeIn<Name>> } {
  const kept = new KeptWrites(keepRules);
  return {
    completing: {
      settle: (ended, release) =>
        kept.complete(ended, release) ??
        bind(completeJobs, { poolId: ended[0]!.poolId, jobIds: ended.map(({ jobId }) => jobId), ...release }),
      action: "completeJob",
      delayMs: delays.completeJobBatchDelay,
    },
    failing: {
      settle: (ended, release, isInDoubt) =>
        kept.fail(ended, release, isInDoubt) ??
        bind(failJobs, {
          poolId: ended[0]!.poolId,
          jobIds: ended.map(({ outcome }) => outcome.job.id),
          attempts: ended.map(({ outcome }) => outcome.job.attempts),
          errors: ended.map(({ outcome }) => outcome.text),
          payloads: ended.map(({ outcome }) => outcome.remaining ?? null),
          ...release,
          isInDoubt,
        }),
      action: "failJob",
      delayMs: delays.failJobBatchDelay,
    },
    ruling: {
      settle: (ended, release, isInDoubt) => {
        const { poolId } = ended[0]!;
        const held = ended.flatMap(({ outcome }) => toHeld(outcome));
        const settling =
          kept.rule(ended, toRuled, release, isInDoubt) ??
          bind(ruleJobs, { poolId, jobs: ended.map(({ outcome }) => toRuled(outcome)), ...release, isInDoubt });
        return held.length > 0 ? { ...settling, first: bind(holdLimits, { poolId, held }) } : settling;
      },
      action: "settleJob",
      delayMs: delays.failJobBatchDelay,
    },
  };
}

function toHeld(outcome: OutcomeIn<"ruling">): HeldBack[] {
  if (outcome.kind !== "snoozed" || !outcome.holds) return [];
  const { job, delayMs, holds, error } = outcome;
  return [{ id: job.id, delayMs, limit: holds.limit ?? null, reason: error.message }];
}

const rulingByKind = {
  backedOff: "retry",
  gaveUp: "give-up",
  snoozed: "snooze",
  cancelled: "cancel",
} as const satisfies Record<OutcomeIn<"ruling">["kind"], Ruling>;

function toRuled(outcome: OutcomeIn<"ruling">): RuledJob {
  const { job, text } = outcome;
  const isSnoozed = outcome.kind === "snoozed";
  return {
    id: job.id,
    attempt: job.attempts,
    ruling: rulingByKind[outcome.kind],
    error: text,
    payload: (outcome.kind === "backedOff" && outcome.remaining) || null,
    delayMs: isSnoozed || outcome.kind === "backedOff" ? outcome.delayMs : null,
    runAt: isSnoozed && outcome.isExact ? outcome.runAt : null,
    cap: (isSnoozed ? outcome.maxSnoozes : undefined) ?? null,
    token: isSnoozed ? outcome.token : null,
  };
}
