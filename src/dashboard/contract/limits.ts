import type { BoundedCount, Moment } from "./basics.ts";

/** GET api/limits */
export interface LimitsPage {
  readonly now: Moment;
  readonly limits: readonly LimitInfo[];
  readonly pauses: readonly PauseInfo[];
}

export const limitKinds = ["concurrency", "rate", "fair"] as const;
type LimitKindName = (typeof limitKinds)[number];

/** Which limit is meant: a task may have one of each kind for each path. */
export interface LimitId {
  /** The task's name, or the name of a limit that several tasks share. */
  readonly name: string;
  readonly kind: LimitKindName;
  /** The key's place in the payload, step by step; empty for one limit over all jobs. */
  readonly path: readonly string[];
}

export interface LimitInfo extends LimitId {
  readonly isShared: boolean;
  readonly tasks: readonly string[];
  /** Jobs at a time, or that start in a period; null if keys only take turns. */
  readonly limit: number | null;
  readonly periodMs: number | null;
  readonly burst: number;
  /** Jobs that a key starts in its turn. */
  readonly weight: number;
  /** Jobs of its tasks. */
  readonly running: BoundedCount;
  readonly waiting: BoundedCount;
  /** Keys with values of their own; at most 50. */
  readonly keys: readonly LimitKey[];
  readonly holds: readonly LimitHoldInfo[];
  /** Keys of the jobs that come next, those with the most jobs first; at most ten. */
  readonly waitingKeys: readonly WaitingKey[];
  /** So many jobs were looked at for them. */
  readonly waitingLookedAt: number;
  /** Changed at run time, or made then: it can be taken back. */
  readonly isChanged: boolean;
}

/** Null leaves the limit's own value. */
export interface LimitKey {
  /** Empty for jobs without a key; `redactedText` if it is a hidden part of payloads, as elsewhere. */
  readonly key: string;
  readonly limit: number | null;
  readonly weight: number | null;
}

interface WaitingKey {
  /** Empty for jobs without a key. */
  readonly key: string;
  readonly jobs: number;
}

export interface LimitHoldInfo {
  /** Null: all jobs. */
  readonly key: string | null;
  readonly until: Moment;
  readonly reason: string | null;
}

export type PauseKindName = "task" | "queue" | "worker" | "cron" | "all";

export interface PauseInfo {
  readonly kind: PauseKindName;
  readonly name: string | null;
  readonly at: Moment;
  readonly until: Moment | null;
  readonly reason: string | null;
  readonly by: string | null;
}
