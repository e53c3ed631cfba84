import { shortPatienceMs, statement } from "../statement.ts";

export interface LimitIndexRow {
  readonly name: string;
  /** `w`: of waiting jobs; `r`: of locked ones. */
  readonly kind: "w" | "r";
  readonly task_id: number;
  readonly task: string;
  readonly path: string[];
  /** The path as an SQL literal. */
  readonly path_literal: string;
  readonly is_valid: boolean;
}

/** The indexes that the limits need, and whether they are there. */
export const listLimitIndexes = statement<Record<string, never>, LimitIndexRow>({
  name: "list_limit_indexes",
  patienceMs: shortPatienceMs,
  values: () => [],
  text: `
    select wanted.name, wanted.kind, wanted.task_id, wanted.task, wanted.path, wanted.path_literal,
      graphile_worker._hathi_has_limit_index(wanted.kind, wanted.task_id, wanted.path) as is_valid
    from graphile_worker._hathi_limit_indexes() as wanted
    order by wanted.task_id, wanted.kind desc, wanted.name`,
});

/** The statement that builds such an index. Conditions are spelt as in `_hathi_find_turns`. */
export function limitIndexText({ name, kind, task_id: taskId, path, path_literal: literal }: LimitIndexRow): string {
  const key = `(graphile_worker._hathi_limit_key(payload, ${literal}::text[]) collate "C")`;
  const isWhole = path.length === 0;
  return kind === "r"
    ? `create index concurrently ${name} on graphile_worker._private_jobs using btree (${isWhole ? "task_id" : key})
        where ${isWhole ? "task_id" : "task_id + 0"} = ${taskId} and locked_at is not null`
    : `create index concurrently ${name} on graphile_worker._private_jobs using btree (priority, ${key}, run_at, id)
        where task_id + 0 = ${taskId} and locked_at is null and attempts < max_attempts and job_queue_id is null`;
}

/** Indexes for limits that are being built. */
export const listLimitBuilds = statement<
  Record<string, never>,
  { readonly name: string; readonly phase: string; readonly percent: number }
>({
  name: "list_limit_builds",
  values: () => [],
  text: `
    select class.relname as name, progress.phase,
      case when progress.blocks_total > 0 then (100 * progress.blocks_done / progress.blocks_total)::integer else 0 end as percent
    from pg_catalog.pg_stat_progress_create_index as progress
    join pg_catalog.pg_class as class on class.oid = progress.index_relid
    where progress.datname = pg_catalog.current_database()`,
});
