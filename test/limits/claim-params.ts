import type { ClaimLimitedParams } from "../../src/db/statements/claim-limited.ts";

/** A claim of limited jobs by a pool without flags, queues of its own or a clock. */
export function claimParams(taskIds: readonly number[], wanted: number): ClaimLimitedParams {
  return {
    poolId: "pool",
    workerNames: [],
    taskIds,
    wanted,
    ahead: 0,
    timedAhead: 0,
    perQueue: 1,
    forbidden: null,
    accepted: null,
    clock: null,
    withQueues: true,
    turns: {},
    nth: 0,
    relaxed: true,
    lates: {},
  };
}
