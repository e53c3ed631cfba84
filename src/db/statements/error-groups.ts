import { statement } from "../statement.ts";

export interface ErrorGroupRow {
  readonly fingerprint: string;
  readonly task_identifier: string;
  readonly error_class: string;
  readonly count: number;
  /** There may be more than `count` since then. */
  readonly has_more: boolean;
  /** How many jobs the failures belong to, those among them that were looked at; null without `since` and `lookAt`. */
  readonly jobs: number | null;
  readonly first_at: Date;
  readonly last_at: Date;
  /** The latest of them. */
  readonly example_id: string;
  readonly example_error: string;
  /** Failures by step, from 1 on; null without steps. */
  readonly trend: { readonly [step: string]: number } | null;
}

export interface ErrorGroupsParams {
  readonly task: string | null;
  readonly fingerprint: string | null;
  readonly since: Date | null;
  readonly limit: number;
  /** Of each group, only so many of the latest failures are read. */
  readonly lookAt: number;
  /** Steps from `since` until now. */
  readonly steps: number | null;
}

/** The latest failure of each group. */
const example = `(
      select attempt.job_id, attempt.error
      from graphile_worker._hathi_history_attempts as attempt
      where attempt.expires_on = groups.expires_on and attempt.fingerprint = groups.fingerprint and attempt.settled_at = groups.last_at
      limit 1
    ) as example`;

/** All failures that are kept, in groups; the latest first. Reads the groups, not the failures. */
export const listAllErrorGroups = statement<Pick<ErrorGroupsParams, "task" | "fingerprint" | "limit">, ErrorGroupRow>({
  name: "list_all_error_groups",
  values: ({ task, fingerprint, limit }) => [task, fingerprint, limit],
  text: `
    with groups as materialized (
      select known.fingerprint, min(known.task_identifier) as task_identifier, min(known.error_class) as error_class,
        sum(known.failures)::float8 as count, min(known.first_at) as first_at, max(known.last_at) as last_at,
        (pg_catalog.array_agg(known.expires_on order by known.last_at desc))[1] as expires_on
      from graphile_worker._hathi_error_groups as known
      where ($1::text is null or known.task_identifier = $1::text)
        and ($2::text is null or known.fingerprint = $2::text)
      group by known.fingerprint
      order by last_at desc
      limit $3::integer
    )
    select groups.fingerprint, groups.task_identifier, groups.error_class, groups.count, false as has_more, null::float8 as jobs, groups.first_at,
      groups.last_at, example.job_id::text as example_id, example.error as example_error, null::json as trend
    from groups
    cross join lateral ${example}
    order by groups.last_at desc`,
});

/**
 * Failures since a moment in groups, the latest first. Which groups there are is read from the groups, and of each a bounded number of failures, so that the
 * cost depends on neither the failures nor the time. A group whose failures are all since then needs none of them to be counted.
 */
export const listErrorGroups = statement<ErrorGroupsParams, ErrorGroupRow>({
  name: "list_error_groups",
  values: ({ task, fingerprint, since, limit, lookAt, steps }) => [task, fingerprint, since, limit, lookAt, steps],
  text: `
    with groups as materialized (
      select known.fingerprint, min(known.task_identifier) as task_identifier, min(known.error_class) as error_class,
        sum(known.failures)::float8 as count, min(known.first_at) as first_at, max(known.last_at) as last_at,
        (pg_catalog.array_agg(known.expires_on order by known.last_at desc))[1] as expires_on,
        $3::timestamptz is null or min(known.first_at) >= $3::timestamptz as is_whole
      from graphile_worker._hathi_error_groups as known
      where ($1::text is null or known.task_identifier = $1::text)
        and ($2::text is null or known.fingerprint = $2::text)
        and ($3::timestamptz is null or known.last_at >= $3::timestamptz)
      group by known.fingerprint
      order by last_at desc
      limit $4::integer
    ), looked as materialized (
      select groups.fingerprint, latest.job_id, latest.settled_at
      from groups
      cross join lateral (
        select attempt.job_id, attempt.settled_at
        from graphile_worker._hathi_history_attempts as attempt
        where attempt.fingerprint = groups.fingerprint and ($3::timestamptz is null or attempt.settled_at >= $3::timestamptz)
        order by attempt.settled_at desc
        limit $5::integer
      ) as latest
    ), counted as (
      select looked.fingerprint, count(*)::float8 as count, pg_catalog.count(distinct looked.job_id)::float8 as jobs,
        min(looked.settled_at) as first_at
      from looked
      group by looked.fingerprint
    ), stepped as (
      select looked.fingerprint, count(*) as count, least($6::integer, width_bucket(
        extract(epoch from looked.settled_at)::float8, extract(epoch from $3::timestamptz)::float8,
        extract(epoch from now())::float8 + 0.001::float8, $6::integer)) as step
      from looked
      where $6::integer is not null
      group by looked.fingerprint, step
    ), trends as (
      select stepped.fingerprint, pg_catalog.jsonb_object_agg(stepped.step, stepped.count) as trend
      from stepped
      group by stepped.fingerprint
    )
    select groups.fingerprint, groups.task_identifier, groups.error_class,
      case when groups.is_whole then groups.count else counted.count end as count,
      not groups.is_whole and counted.count >= $5::integer::float8 as has_more, counted.jobs,
      case when groups.is_whole then groups.first_at else counted.first_at end as first_at, groups.last_at,
      example.job_id::text as example_id, example.error as example_error, trends.trend
    from groups
    join counted on counted.fingerprint = groups.fingerprint
    cross join lateral ${example}
    left join trends on trends.fingerprint = groups.fingerprint
    order by groups.last_at desc`,
});
