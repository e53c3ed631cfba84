import type { PauseKind } from "../../pause.ts";
import { shortPatienceMs, statement } from "../statement.ts";

/** What a claim says of pauses, as JSON. */
export interface PauseReport {
  /** In how many milliseconds the first of them ends by itself. */
  readonly endsInMs: number | null;
  readonly pauses: readonly ReportedPause[];
}

export interface ReportedPause {
  readonly kind: PauseKind;
  readonly name: string | null;
  readonly queueId: number | null;
  readonly pausedAt: string;
  readonly until: string | null;
  readonly reason: string | null;
  readonly pausedBy: string | null;
}

/** What a claim would say of pauses; also ends and applies what is due. */
export const reportPauses = statement<
  { workerNames: readonly string[]; clock: Date | null },
  { readonly pauses: string | null }
>({
  name: "report_pauses",
  patienceMs: shortPatienceMs,
  values: ({ workerNames, clock }) => [workerNames, clock],
  text: `
    select case when exists (select from graphile_worker._hathi_pauses)
      then graphile_worker._hathi_report_pauses($1::text[], $2::timestamptz)
    end as pauses
    from graphile_worker._hathi_unpaused_tasks($1::text[], '{}', $2::timestamptz)`,
});

export interface PauseRow {
  readonly kind: PauseKind;
  readonly name: string | null;
  readonly paused_at: Date;
  readonly until: Date | null;
  readonly reason: string | null;
  readonly paused_by: string | null;
}

const pauseColumns = "kind, nullif(name, '') as name, paused_at, nullif(until, 'infinity') as until, reason, paused_by";

export const pauseWork = statement<
  { kind: PauseKind; name: string | null; until: Date | null; reason: string | null; pausedBy: string | null },
  PauseRow
>({
  name: "pause_work",
  patienceMs: shortPatienceMs,
  values: ({ kind, name, until, reason, pausedBy }) => [kind, name, until, reason, pausedBy],
  text: `
    select ${pauseColumns}
    from graphile_worker.pause_work($1::text, $2::text, $3::timestamptz, $4::text, $5::text)`,
});

export const resumeWork = statement<{ kind: PauseKind; name: string | null }, { readonly was_paused: boolean }>({
  name: "resume_work",
  patienceMs: shortPatienceMs,
  values: ({ kind, name }) => [kind, name],
  text: "select graphile_worker.resume_work($1::text, $2::text) as was_paused",
});

/** The pauses that are in force at a moment, or now by the database's clock. */
export const listPauses = statement<{ clock: Date | null }, PauseRow>({
  name: "list_pauses",
  patienceMs: shortPatienceMs,
  values: ({ clock }) => [clock],
  text: `
    select ${pauseColumns}
    from graphile_worker._hathi_pauses
    where until > coalesce($1::timestamptz, now())
    order by paused_at, kind, name`,
});

/** A schema that was not brought up to date has no table of pauses. */
export const hasPauses = statement<{ schema: string }, { readonly has: boolean }>({
  name: "has_pauses",
  values: ({ schema }) => [schema],
  text: "select to_regclass(pg_catalog.format('%I._hathi_pauses', $1::text)) is not null as has",
});
