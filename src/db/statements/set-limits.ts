import { shortPatienceMs, statement } from "../statement.ts";

export interface SetLimitParams {
  readonly name: string;
  readonly key: string | null;
  readonly places: number | null;
  readonly weight: number | null;
  readonly burst: number | null;
  readonly periodMs: number | null;
  readonly kind: string | null;
  readonly path: readonly string[] | null;
}

export const setLimit = statement<SetLimitParams, object>({
  name: "set_limit",
  patienceMs: shortPatienceMs,
  values: ({ name, key, places, weight, burst, periodMs, kind, path }) => [
    name,
    key,
    places,
    weight,
    burst,
    periodMs,
    kind,
    path,
  ],
  text: `
    select from graphile_worker.set_limit(
      $1::text, $2::text, $3::integer, $4::integer, $5::integer, $6::double precision * interval '1 millisecond', $7::text, $8::text[]
    )`,
});

export const clearLimit = statement<
  Pick<SetLimitParams, "name" | "key" | "kind" | "path">,
  { readonly cleared: boolean }
>({
  name: "clear_limit",
  patienceMs: shortPatienceMs,
  values: ({ name, key, kind, path }) => [name, key, kind, path],
  text: "select graphile_worker.clear_limit($1::text, $2::text, $3::text, $4::text[]) as cleared",
});

export interface LimitRow {
  readonly scope: "task" | "shared";
  readonly name: string;
  readonly kind: "concurrency" | "rate" | "fair";
  readonly path: string[];
  /** With what was set at run time. */
  readonly places: number | null;
  readonly period_ms: number | null;
  readonly burst: number;
  readonly weight: number;
  readonly defined: number | null;
  readonly is_changed: boolean;
  readonly origin: "code" | "set";
  readonly declared_at: Date;
  readonly declared_by: string | null;
  readonly tasks: string[];
  readonly running: number;
  readonly waiting: number;
  readonly overrides:
    | { key: string; places: number | null; periodMs: number | null; burst: number | null; weight: number | null }[]
    | null;
  readonly holds: { key: string | null; until: string; reason: string | null }[] | null;
}

/** The limits that are in force. Counts stop at 10,001. */
export const listLimits = statement<{ countJobs: boolean }, LimitRow>({
  name: "list_limits",
  values: ({ countJobs }) => [countJobs],
  text: `
    select bound.scope, bound.name, bound.kind, bound.path, coalesce(whole.places, bound.places) as places,
      coalesce(whole.period_ms, bound.period_ms) as period_ms, coalesce(whole.burst, bound.burst) as burst,
      coalesce(whole.weight, bound.weight) as weight, bound.places as defined, whole.limit_id is not null as is_changed, bound.origin, bound.declared_at, bound.declared_by,
      member.tasks, counted.running, counted.waiting,
      (
        select pg_catalog.json_agg(pg_catalog.json_build_object(
          'key', pg_catalog.substr(o.key, 2), 'places', o.places, 'periodMs', o.period_ms, 'burst', o.burst, 'weight', o.weight
        ) order by o.key)
        from graphile_worker._hathi_limit_overrides as o
        where o.limit_id = bound.id and o.key <> '*'
      ) as overrides,
      (
        select pg_catalog.json_agg(pg_catalog.json_build_object(
          'key', case when h.key <> '*' then pg_catalog.substr(h.key, 2) end, 'until', h.until, 'reason', h.reason
        ) order by h.key)
        from graphile_worker._hathi_limit_holds as h
        where h.limit_id = bound.id and h.until > now()
      ) as holds
    from graphile_worker._hathi_limits as bound
    join lateral (
      select pg_catalog.array_agg(limited.task order by limited.task) as tasks
      from graphile_worker._hathi_limited_tasks as limited
      where bound.id = any (limited.limit_ids)
      having count(*) > 0
    ) as member on true
    left join graphile_worker._hathi_limit_overrides as whole on whole.limit_id = bound.id and whole.key = '*'
    cross join lateral (
      select
        (
          select count(*)::float8 from (
            select from graphile_worker._private_jobs as job
            where $1::boolean and job.locked_at is not null
              and job.task_id in (select task.id from graphile_worker._private_tasks as task where task.identifier = any (member.tasks))
            limit 10001
          ) as counted_rows
        ) as running,
        (
          select count(*)::float8 from (
            select from graphile_worker._private_jobs as job
            where $1::boolean and job.locked_at is null and job.attempts < job.max_attempts and job.run_at <= now()
              and job.task_id in (select task.id from graphile_worker._private_tasks as task where task.identifier = any (member.tasks))
            limit 10001
          ) as counted_rows
        ) as waiting
    ) as counted
    order by bound.name, bound.scope, bound.kind, bound.path`,
});
