import type { JobProgress } from "../../progress.ts";
import { shortPatienceMs, statement } from "../statement.ts";

/** Where a job is, for those who watch it. */
export interface WatchedJobRow {
  readonly id: string;
  /** `failed`: it had failed permanently, and was removed since. */
  readonly state: "present" | "dead" | "succeeded" | "failed" | "cancelled";
  readonly task_identifier: string | null;
  readonly attempts: number;
  readonly error: string | null;
  readonly error_class: string | null;
  readonly result: unknown;
  /** False if no result was kept. */
  readonly has_result: boolean;
  /** The result did not fit into this response: ask again. */
  readonly is_later: boolean;
  /** Null if it has not reported any. */
  readonly progress: JobProgress | null;
  readonly reported_at: Date | null;
}

/** Where these jobs are; unknown ones are left out. */
export const watchJobs = statement<{ ids: readonly string[] }, WatchedJobRow>({
  name: "watch_jobs",
  patienceMs: 60_000,
  values: ({ ids }) => [`{${ids.join(",")}}`],
  text: `
    select job_id::text as id, state, task_identifier, attempts, error, error_class, result, result is not null as has_result, is_later,
      case when done is not null then json_build_object('done', done, 'total', total, 'note', note) end as progress, reported_at
    from graphile_worker._hathi_watch_jobs($1::bigint[])`,
});

/** How far a job is, to be written. */
export interface ReportedJob extends JobProgress {
  readonly id: string;
}

/** Writes how far the pool's jobs are, and deletes that of jobs which have ended and are gone. */
export const writeProgress = statement<
  { poolId: string; reports: readonly ReportedJob[]; endedIds: readonly string[] },
  object
>({
  name: "write_progress",
  patienceMs: shortPatienceMs,
  values: ({ poolId, reports, endedIds }) => [
    poolId,
    reports.map(({ id }) => id),
    reports.map(({ done }) => done),
    reports.map(({ total }) => total),
    reports.map(({ note }) => note),
    endedIds,
  ],
  text: `
    select from graphile_worker._hathi_write_progress(
      $1::text, $2::bigint[], $3::double precision[], $4::double precision[], $5::text[], $6::bigint[]
    )`,
});
