import { inspect } from "node:util";
import { HookError } from "../errors.ts";
import type { TaskSpec } from "../job.ts";

/** Ends the matter with an error. To throw is the same. */
export interface Failure {
  readonly fail: string | Error;
}

/** Nothing, or `continue`, leaves the matter to the next hook; any other answer is final. */
export type HookResult = void | "continue" | "skip" | Failure;

/** As `HookResult`; or what to change, which the next hook then sees. */
export type JobScheduleResult = HookResult | JobChange;

export interface JobChange {
  readonly payload?: unknown;
  /** What is named here is changed (to undefined: taken away), the rest stays. */
  readonly spec?: { readonly [Key in keyof TaskSpec]?: TaskSpec[Key] | undefined };
}

/** `default` gives the job back, to be run after the usual delay; `skip` leaves it locked as it is. */
export type JobRecoveryResult =
  | void
  | "default"
  | "failWithBackoff"
  | "skip"
  | { readonly reschedule: { readonly runAt: Date; readonly attempts?: number } };

/** What hooks decided between them. */
export type Verdict =
  | { readonly kind: "continue" }
  | { readonly kind: "skip" }
  | { readonly kind: "fail"; readonly error: Error };

/** What becomes of an interrupted job. */
export type RecoveryDecision =
  | "default"
  | "failWithBackoff"
  | "skip"
  | { readonly runAt: Date; readonly attempts?: number };

/** Reads a hook's result; undefined leaves the decision to the next hook. An unknown result is an error. */
export function readVerdict(name: string, answer: unknown): Verdict | undefined {
  if (answer === undefined || answer === null || answer === "continue") return undefined;
  if (answer === "skip") return { kind: "skip" };
  if (typeof answer === "object" && "fail" in answer) {
    const { fail } = answer;
    if (fail instanceof Error) return { kind: "fail", error: fail };
    if (typeof fail === "string" && fail !== "") return { kind: "fail", error: new HookError(fail) };
  }
  throw new HookError(
    `The hook '${name}' answered ${inspect(answer)}; it may answer nothing, "continue", "skip" or { fail: "why" }` +
      `${name === "beforeJobSchedule" ? ", or a change { payload, spec }" : ""}.`,
  );
}

export function readChange(answer: unknown): JobChange | undefined {
  const isChange =
    typeof answer === "object" && answer !== null && !("fail" in answer) && ("payload" in answer || "spec" in answer);
  return isChange ? (answer as JobChange) : undefined;
}

export function readRecovery(answer: unknown): RecoveryDecision | undefined {
  if (answer === undefined || answer === null) return undefined;
  if (answer === "default" || answer === "failWithBackoff" || answer === "skip") return answer;
  const { runAt, attempts } = Object(Object(answer).reschedule) as { runAt?: unknown; attempts?: unknown };
  const isMoment = runAt instanceof Date && !Number.isNaN(runAt.getTime());
  const isCount = attempts === undefined || (Number.isInteger(attempts) && Number(attempts) >= 0);
  if (isMoment && isCount) return attempts === undefined ? { runAt } : { runAt, attempts: Number(attempts) };
  throw new HookError(
    `The hook 'jobRecovery' answered ${inspect(answer)}; it may answer nothing, "default", "failWithBackoff", "skip" or ` +
      "{ reschedule: { runAt, attempts } }.",
  );
}
