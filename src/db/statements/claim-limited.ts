import { shortPatienceMs, statement } from "../statement.ts";
import { columnsOfPauses, unpausedTasks, whileAlive } from "./claim.ts";

/** Where the keys of each task are to be visited from: the last key that was served, and how much of its turn is used. */
export type Turns = { readonly [taskId: string]: readonly [key: string, used: number] };

export interface ClaimLimitedParams {
  readonly poolId: string;
  readonly workerNames: readonly string[];
  readonly taskIds: readonly number[];
  /** For free slots. */
  readonly wanted: number;
  /** Beyond them, where limits have places to spare. */
  readonly ahead: number;
  /** How many of those may be jobs that have a time to start. */
  readonly timedAhead: number;
  readonly perQueue: number;
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  readonly clock: Date | null;
  readonly withQueues: boolean;
  readonly turns: Turns;
  readonly nth: number;
  /** By how many milliseconds starts may be later than their slack allows, by the id of the task. */
  readonly lates: Record<string, number>;
  readonly relaxed: boolean;
  /** The last claim has found that places and tokens are plenty. */
  readonly mayBeLate?: boolean;
}

/**
 * When jobs start: how many of the claim come before them and how many they are, when the first one starts in milliseconds after the claim began in
 * the database, how much later each next one, how late each may be, and how much more was granted.
 */
export type StartRow = readonly [
  before: number,
  count: number,
  afterMs: number,
  stepMs: number,
  slackMs: number,
  lateMs: number,
];

export interface ClaimLimitedRow {
  /** JSON text of `ClaimedRow[]`. */
  readonly jobs: string | null;
  /** JSON text of `StartRow[]`. */
  readonly starts: string | null;
  readonly took_ms: number;
  /** When to claim again, if there was room for more; not above 0 if another transaction holds something. */
  readonly due_in_ms: number | null;
  /** Every limited task is held up as a whole: new jobs change nothing. */
  readonly is_blocked: boolean;
  /** There are only limits on everything, and most of their places and tokens are free. */
  readonly are_wide: boolean;
  readonly turns: Turns;
  readonly pauses: string | null;
  /** JSON text of `LimitReport`; null if no task is limited any more. */
  readonly limits: string | null;
}

/** Which tasks have limits, by id, and whether code has declared some of them. */
export type LimitReport = { readonly [taskId: string]: boolean };

export function valuesOfLimited(params: ClaimLimitedParams): unknown[] {
  return [
    params.poolId,
    params.taskIds,
    params.wanted,
    params.ahead,
    params.perQueue,
    params.forbidden,
    params.accepted,
    params.clock,
    params.withQueues,
    JSON.stringify(params.turns),
    params.nth,
    params.relaxed,
    params.workerNames,
    JSON.stringify(params.lates),
    params.timedAhead,
    params.mayBeLate ?? false,
  ];
}

export const columnsOfLimited = `jobs, starts, took_ms, due_in_ms, is_blocked, are_wide, new_turns as turns,
      ${columnsOfPauses("$13", "$8")},
      graphile_worker._hathi_report_limits($2::integer[]) as limits`;
export const claimedLimited = `graphile_worker._hathi_claim_limited(
      $1::text, ${unpausedTasks("$13", "$2", "$8")}, $3::integer, $4::integer, $5::integer, $6::text[], $7::text[], $8::timestamptz,
      $9::boolean, $10::jsonb, $11::integer, $12::boolean, $14::jsonb, $15::integer, $16::boolean
    )`;

const claimLimited = { patienceMs: shortPatienceMs, givesWay: true as const, values: valuesOfLimited };

/** Claims jobs of limited tasks, as far as their limits allow. */
export const claimLimitedJobs = statement<ClaimLimitedParams, ClaimLimitedRow>({
  ...claimLimited,
  name: "claim_limited_jobs",
  text: `
    select ${columnsOfLimited}
    from ${claimedLimited}`,
});

/** The same for a pool that sends heartbeats: gives no row, and claims nothing, if it was declared dead or is about to be. */
export const claimLimitedJobsAlive = statement<ClaimLimitedParams, ClaimLimitedRow>({
  ...claimLimited,
  name: "claim_limited_jobs_alive",
  text: `
    ${whileAlive}
    select ${columnsOfLimited}
    from alive
    cross join lateral ${claimedLimited}`,
});
