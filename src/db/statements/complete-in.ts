import { shortPatienceMs, statement } from "../statement.ts";

/** What `_hathi_complete_in` raises for an attempt that is not the current one. */
export const jobLostState = "HTL01";
/** In the message of that error, for libraries that hide the code. */
export const jobLostMark = "hathi:job-lost";

/** One attempt of a job, as its claim knows it. */
export interface Attempt {
  readonly jobId: string;
  readonly poolId: string;
  readonly attempt: number;
}

export interface CompleteInParams extends Omit<Attempt, "poolId"> {
  /** Null if the attempt is known to be stale: then it only raises. */
  readonly poolId: string | null;
  /** The transaction in which it was completed before, if it was. */
  readonly earlier: string | null;
  readonly limitMs: number;
  readonly runMs: number;
  /** As JSON text. */
  readonly result: string | null;
  /** Null to keep nothing. */
  readonly keptAs: string | null;
  readonly keptDays: number;
  readonly resultDays: number;
  readonly redact: readonly string[];
}

/** Completes a job in the transaction that it is run in; raises `HTL01` if the attempt is not the current one. */
export const completeJobIn = statement<CompleteInParams, { readonly transaction: string }>({
  name: "complete_job_in",
  values: (params) => [
    params.jobId,
    params.poolId,
    params.attempt,
    params.earlier,
    params.limitMs,
    params.runMs,
    params.result,
    params.keptAs,
    params.keptDays,
    params.resultDays,
    params.redact,
  ],
  text: `
    select graphile_worker._hathi_complete_in(
      $1::bigint, $2::text, $3::integer, $4::xid8, $5::float8 * interval '1 millisecond', $6::integer, $7::text, $8::text, $9::integer, $10::integer, $11::text[]
    )::text as transaction`,
});

/** Limits the transaction that it is run in. */
export const boundTransaction = statement<{ limitMs: number }, object>({
  name: "bound_transaction",
  values: ({ limitMs }) => [limitMs],
  text: "select from graphile_worker._hathi_bound_transaction($1::float8 * interval '1 millisecond')",
});

export interface CompletionRow {
  readonly status: "in progress" | "committed" | "aborted";
  /** The job is there, and still this attempt's. */
  readonly is_ours: boolean;
}

/** What became of transactions in which jobs were completed, in the order of the list. */
export const lookAtCompletions = statement<readonly (Attempt & { readonly transaction: string })[], CompletionRow>({
  name: "look_at_completions",
  patienceMs: shortPatienceMs,
  values: (list) => [
    list.map(({ jobId }) => jobId),
    list.map(({ poolId }) => poolId),
    list.map(({ attempt }) => attempt),
    list.map(({ transaction }) => transaction),
  ],
  text: `
    select status, is_ours
    from graphile_worker._hathi_look_at_completions($1::bigint[], $2::text[], $3::integer[], $4::xid8[])`,
});
