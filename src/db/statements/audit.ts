import { shortPatienceMs, statement } from "../statement.ts";

export interface ActionRow {
  readonly id: string;
  readonly started_at: Date;
  readonly done_by: string | null;
  readonly action: string;
  readonly target: { readonly [name: string]: unknown };
  readonly matched: number;
  readonly changed: number;
  readonly finished_at: Date | null;
  /** `interrupted`: whoever did it has not reported for a minute. */
  readonly state: "running" | "done" | "stopped" | "failed" | "interrupted";
  readonly message: string | null;
  readonly stop_asked_by: string | null;
}

const actionColumns = `
  audit.id::text as id, audit.started_at, audit.done_by, audit.action, audit.target, audit.matched::float8 as matched, audit.changed::float8 as changed,
  audit.finished_at, audit.message, audit.stop_asked_by,
  coalesce(audit.outcome, case when audit.reported_at < now() - interval '1 minute' then 'interrupted' else 'running' end) as state`;

export const beginAction = statement<{ by: string | null; action: string; target: object }, ActionRow>({
  name: "begin_action",
  patienceMs: shortPatienceMs,
  values: ({ by, action, target }) => [by, action, JSON.stringify(target)],
  text: `
    insert into graphile_worker._hathi_audit as audit (done_by, action, target)
    values ($1::text, $2::text, $3::jsonb)
    returning ${actionColumns}`,
});

/** Writes how far it is, and ends it if there is an outcome. What has ended stays as it is. */
export const reportAction = statement<
  {
    id: string;
    matched: number;
    changed: number;
    outcome: "done" | "stopped" | "failed" | null;
    message: string | null;
  },
  ActionRow
>({
  name: "report_action",
  patienceMs: shortPatienceMs,
  values: ({ id, matched, changed, outcome, message }) => [id, matched, changed, outcome, message],
  text: `
    update graphile_worker._hathi_audit as audit
    set matched = $2::bigint, changed = $3::bigint, reported_at = now(), outcome = $4::text, message = $5::text,
      finished_at = case when $4::text is not null then now() end
    where audit.id = $1::bigint and audit.outcome is null
    returning ${actionColumns}`,
});

/** Asks an action that runs to stop; the first who asks is remembered. */
export const stopAction = statement<{ id: string; by: string | null }, ActionRow>({
  name: "stop_action",
  patienceMs: shortPatienceMs,
  values: ({ id, by }) => [id, by],
  text: `
    update graphile_worker._hathi_audit as audit
    set stop_asked_by = coalesce(audit.stop_asked_by, $2::text, 'an unknown user')
    where audit.id = $1::bigint and audit.outcome is null
    returning ${actionColumns}`,
});

export const getAction = statement<{ id: string }, ActionRow>({
  name: "get_action",
  patienceMs: shortPatienceMs,
  values: ({ id }) => [id],
  text: `select ${actionColumns} from graphile_worker._hathi_audit as audit where audit.id = $1::bigint`,
});

/** Newest first, from before an id. */
export const listActions = statement<
  { by: string | null; action: string | null; before: string | null; limit: number },
  ActionRow
>({
  name: "list_actions",
  patienceMs: shortPatienceMs,
  values: ({ by, action, before, limit }) => [by, action, before, limit],
  text: `
    select ${actionColumns}
    from graphile_worker._hathi_audit as audit
    where ($1::text is null or audit.done_by = $1::text)
      and ($2::text is null or audit.action = $2::text)
      and ($3::bigint is null or audit.id < $3::bigint)
    order by audit.id desc
    limit $4::integer`,
});

/** Deletes what began before a moment. */
export const deleteActions = statement<{ before: Date }, { readonly id: string }>({
  name: "delete_actions",
  patienceMs: shortPatienceMs,
  values: ({ before }) => [before],
  text: `delete from graphile_worker._hathi_audit as audit where audit.started_at < $1::timestamptz returning audit.id::text as id`,
});
