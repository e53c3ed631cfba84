import { shortPatienceMs, statement } from "../statement.ts";

/** The columns of a claimed job, in the order of the function's JSON; times are seconds since 1970, infinite ones ±1e15. */
export type ClaimedRow = readonly [
  id: string,
  jobQueueId: number | null,
  taskId: number,
  payload: unknown,
  priority: number,
  runAt: number,
  attempts: number,
  maxAttempts: number,
  lastError: string | null,
  createdAt: number,
  updatedAt: number,
  key: string | null,
  revision: number,
  flags: { [flag: string]: true } | null,
  /** The payload is not here: it is large, and to be had with `readPayloads`. */
  isLarge?: 1,
];

/** How far a claim got in one priority: everything up to there was looked at. */
export type Mark = readonly [priority: number, runAt: number, id: string];

export interface ClaimParams {
  readonly poolId: string;
  readonly taskIds: readonly number[];
  readonly wanted: number;
  /** How many jobs of one named queue may be taken at once. */
  readonly perQueue: number;
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  /** The worker's clock, or null for the database's. */
  readonly clock: Date | null;
  /** Where to start in each priority; empty for the very beginning. */
  readonly marks: readonly Mark[];
  /** Whether to look for jobs of priorities that have no mark but come before one that has. */
  readonly betweenMarks: boolean;
  /** The head of the line is full of jobs that are not for us: do not read it. */
  readonly offOrder: boolean;
  /** The claim need not survive a crash of the server. */
  readonly relaxed: boolean;
}

export interface ClaimResultRow {
  /** JSON text of `ClaimedRow[]`; one value is many times cheaper to parse than rows of columns. */
  readonly jobs: string | null;
  /** When the next known job falls due, if fewer were found than wanted. */
  readonly due_in_ms: number | null;
  /** JSON text of `Mark[]`; null where named queues were met, whose jobs could come back behind a mark. */
  readonly reached: string | null;
  readonly polluted: boolean;
  readonly contended: boolean;
  /** What it took to find out which priorities there are. */
  readonly searched_ms: number;
}

/** Locks up to `wanted` due jobs for one pool. Rows another pool is claiming are skipped, not waited for. */
export const claimJobs = statement<ClaimParams, ClaimResultRow>({
  name: "claim_jobs",
  patienceMs: shortPatienceMs,
  values: (params) => [
    params.poolId,
    params.taskIds,
    params.wanted,
    params.perQueue,
    params.forbidden,
    params.accepted,
    params.clock,
    params.marks.map(([priority]) => priority),
    params.marks.map(([, runAt]) => runAt),
    params.marks.map(([, , id]) => id),
    params.betweenMarks,
    params.offOrder,
    params.relaxed,
  ],
  text: `
    select jobs, due_in_ms, reached, polluted, contended, searched_ms
    from graphile_worker._hathi_claim_jobs(
      $1::text, $2::integer[], $3::integer, $4::integer, $5::text[], $6::text[], $7::timestamptz,
      $8::smallint[], $9::timestamptz[], $10::bigint[], $11::boolean, $12::boolean, $13::boolean
    )`,
});
