-- Concurrency limits, rate limits and turns, over all processes.
--
-- What always holds:
--   1. Never above a limit. How many places of a concurrency limit are taken is read from the locked rows of its tasks, whoever locked them
--      (a pool, an original worker, the recovery that has parked a job): nothing is counted up or down, so nothing can drift. Check and
--      claim are one transaction that holds the limit's row, so no two claims give away the same place. Where places are plenty, a claim takes its
--      jobs first and then the row (`is_late`), and counts all that is locked, its own included: it is committed only if that is within the limit.
--      The same goes for a rate that has tokens for several such claims: they are spent under its row, for all jobs or for none.
--      The exception is a crash of the server, which may forget claims of a limit that is less than half used, while their jobs run on.
--   2. A limited task is in `_hathi_limited_tasks`, and the plain claim leaves such tasks alone, whatever its pool knows. For a quarter of a
--      second after a task became limited no claim takes it, so plain claims that had begun before are over and their rows are counted.
--   3. A rate is kept by one timestamp per limit and key (GCRA). A claim takes a job only if it knows when the job starts, at most 50 ms
--      ahead, and tells the pool; a pool that misses that moment returns the job and its token is lost. `slack` is how late a start may
--      be: the time between tokens is a little longer than the limit asks for, so that in every window of `period` no more than
--      limit plus burst jobs start, however late each one is within its slack. A pool that has missed one start after the other may ask to
--      be later still, by `late`. Its token is then counted where it is used at the latest: what is admitted until then has left room for it,
--      whenever it starts, so the same holds. Where a part of the burst is left, that costs nothing, so it is granted unasked (`grace`). A job
--      that costs more than the burst and one waits for the rest of its tokens before it starts; the window that begins with it would have too
--      many, by what it costs beyond the burst. So for a period from its start on, tokens are as far apart as if the limit were lower by that
--      (`spare`, a quarter of the limit at most; what is beyond is waited for again after it).
--   4. Within a priority the keys of a task take turns: a claim goes on at the key where the pool's last claim ended, and takes as many
--      jobs per visit as the key's weight says. It never reads past the jobs of a key, so a key with a million jobs delays no other.
--   5. Limit rows are locked in the order of their ids, and a claim waits for them 100 ms at most; everything else it takes with `skip locked`, so
--      a claim that holds a limit's row does not wait for one that holds jobs and waits for the row. Changing a limit at run time does not touch
--      those rows.
--   6. Jobs that must not run here (flags, pauses) take no place and no token. Jobs of a named queue obey their queue and their limits.
--
-- The key of a job is a part of its payload, as text: '=' and the value, or '-' if there is none. '*' stands for the limit as a whole.

create table graphile_worker._hathi_limits (
  id integer generated always as identity constraint _hathi_limits_pkey primary key,
  -- A limit of one task, or one that several tasks share; `name` is the task's or its own.
  scope text not null constraint _hathi_limits_scope_check check (scope in ('task', 'shared')),
  name text not null,
  -- `fair` has no limit: its keys take turns.
  kind text not null constraint _hathi_limits_kind_check check (kind in ('concurrency', 'rate', 'fair')),
  -- Where the key is in the payload; empty for a limit on everything.
  path text[] not null default '{}',
  places integer,
  period_ms double precision,
  burst integer not null default 0,
  weight integer not null default 1,
  weight_path text[],
  cost integer not null default 1,
  cost_path text[],
  -- `code`: a worker declared it. `set`: it was made at run time.
  origin text not null default 'code' constraint _hathi_limits_origin_check check (origin in ('code', 'set')),
  declared_at timestamptz not null default now(),
  declared_by text,
  -- Written only where the isolation level is stricter than ours, so that claims that meet fail and not see too little.
  claims integer not null default 0,
  constraint _hathi_limits_name_key unique (scope, name, kind, path)
);
alter table graphile_worker._hathi_limits enable row level security;

-- Which limits a task has. A task without limits has no row.
create table graphile_worker._hathi_limited_tasks (
  task text not null constraint _hathi_limited_tasks_pkey primary key,
  limit_ids integer[] not null,
  since timestamptz not null default clock_timestamp()
);
alter table graphile_worker._hathi_limited_tasks enable row level security;

-- What was changed at run time: for one key, or for the limit as a whole ('*'). Null leaves the definition's value.
create table graphile_worker._hathi_limit_overrides (
  limit_id integer not null references graphile_worker._hathi_limits on delete cascade,
  key text not null,
  places integer,
  period_ms double precision,
  burst integer,
  weight integer,
  set_at timestamptz not null default now(),
  set_by text,
  constraint _hathi_limit_overrides_pkey primary key (limit_id, key)
);
alter table graphile_worker._hathi_limit_overrides enable row level security;

-- The state of rates: when the next token would be due if none were to spare (`tat`), and the first moment at which a job may start
-- (`free_at`). `late_until` is the last moment at which a token was counted that could be used earlier. `spare` tokens of each period are not
-- used until `spare_until`, because of a job that cost more than the burst has. A row whose `tat` is long past says nothing and is deleted.
create table graphile_worker._hathi_limit_rates (
  limit_id integer not null references graphile_worker._hathi_limits on delete cascade,
  key text not null,
  tat timestamptz not null,
  free_at timestamptz not null,
  late_until timestamptz,
  spare integer not null default 0,
  spare_until timestamptz,
  constraint _hathi_limit_rates_pkey primary key (limit_id, key)
) with (fillfactor = 50);
create index _hathi_limit_rates_by_tat on graphile_worker._hathi_limit_rates (limit_id, tat);
alter table graphile_worker._hathi_limit_rates enable row level security;

-- What a task has asked to hold back (`RateLimitError`).
create table graphile_worker._hathi_limit_holds (
  limit_id integer not null references graphile_worker._hathi_limits on delete cascade,
  key text not null,
  until timestamptz not null,
  reason text,
  constraint _hathi_limit_holds_pkey primary key (limit_id, key)
);
alter table graphile_worker._hathi_limit_holds enable row level security;

-- A part of a payload, as JSON text. PostgreSQL cannot take apart a payload in which some string, wherever it is, cannot be text (\u0000, half of a
-- surrogate pair): there such escapes are taken for the six characters that they are written with. It must never fail, or one job would stop all
-- claims of its task. Not parallel safe: before PostgreSQL 17 a parallel worker can catch no errors.
create or replace function graphile_worker._hathi_limit_part(payload json, path text[])
returns text language plpgsql immutable parallel unsafe set search_path = pg_catalog, pg_temp as $hathi$
begin
  if strpos(payload::text, E'\\u') = 0 then
    return (payload #> path)::text;
  end if;
  begin
    return (payload #> path)::text;
  exception when others then
    null;
  end;
  begin
    return (regexp_replace(payload::text, E'(?<!\\\\)((?:\\\\\\\\)*)\\\\u(0000|[dD][89abAB][[:xdigit:]]{2}(?!\\\\u[dD][c-fC-F])|(?<!\\\\u[dD][89abAB][[:xdigit:]]{2}\\\\u)[dD][c-fC-F])',
      E'\\1\\\\\\\\u\\2', 'g')::json #> path)::text;
  exception when others then
    return null;
  end;
end;
$hathi$;

-- A job's key. Strings are only unescaped where that is needed, and long keys are shortened to fit into an index. Indexes contain what it
-- gives: it must never give anything else for the same payload.
create or replace function graphile_worker._hathi_limit_key(payload json, path text[])
returns text language plpgsql immutable parallel unsafe set search_path = pg_catalog, pg_temp as $hathi$
declare
  value text;
begin
  if strpos(payload::text, E'\\u') = 0 then
    value := (payload #> path)::text;
  else
    value := graphile_worker._hathi_limit_part(payload, path);
  end if;
  if value is null or value = 'null' or value = '""' then
    return '-';
  end if;
  if left(value, 1) = '"' then
    if strpos(value, E'\\') = 0 then
      value := substr(value, 2, length(value) - 2);
    else
      begin
        value := value::json #>> '{}';
      exception when others then
        null;
      end;
    end if;
  end if;
  if length(value) > 120 then
    return '=' || left(value, 80) || '#' || to_hex(hashtextextended(value, 0));
  end if;
  return '=' || value;
end;
$hathi$;

-- A whole number from the payload, within bounds; what is none counts as 1.
create or replace function graphile_worker._hathi_limit_number(payload json, path text[], most integer)
returns integer language plpgsql immutable parallel unsafe set search_path = pg_catalog, pg_temp as $hathi$
declare
  value constant text := graphile_worker._hathi_limit_part(payload, path);
begin
  if value is null or value !~ '^[0-9]{1,9}([.][0-9]+)?$' then
    return 1;
  end if;
  return greatest(1, least(most, ceil(value::numeric)::integer));
end;
$hathi$;

-- How late a start may be, in milliseconds. A missed start costs a token, which is much where the period is long.
create or replace function graphile_worker._hathi_rate_slack(period_ms double precision)
returns double precision language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  return greatest(5, least(10000, period_ms * 0.04));
end;
$hathi$;

-- What the indexes of a task and a key are called. `w` has the waiting jobs, `r` those that are locked.
create or replace function graphile_worker._hathi_limit_index(kind text, task_id integer, path text[])
returns text language sql immutable set search_path = pg_catalog, pg_temp as $hathi$
  select '_hathi_limit_' || kind || '_' || task_id || '_' || to_hex(hashtextextended(path::text, 0));
$hathi$;

-- The indexes that the limits need: one of locked jobs per task and path, and one of waiting jobs where keys take turns.
create or replace function graphile_worker._hathi_limit_indexes()
returns table (name text, kind text, task_id integer, task text, path text[], path_literal text)
language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select graphile_worker._hathi_limit_index(wanted.kind, wanted.id, wanted.path), wanted.kind, wanted.id, wanted.task, wanted.path,
    quote_literal(wanted.path::text)
  from (
    select distinct 'r' as kind, task.id, task.identifier as task, bound.path
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._private_tasks as task on task.identifier = member.task
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where bound.kind = 'concurrency'
    union
    select distinct 'w', task.id, task.identifier, bound.path
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._private_tasks as task on task.identifier = member.task
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where bound.path <> '{}'
  ) as wanted;
$hathi$;

create or replace function graphile_worker._hathi_has_limit_index(kind text, task_id integer, path text[])
returns boolean language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select exists (
    select from pg_catalog.pg_class as class
    join pg_catalog.pg_index as index on index.indexrelid = class.oid
    where class.relname = graphile_worker._hathi_limit_index(kind, task_id, path)
      and index.indisvalid
      and class.relnamespace = (
        select home.relnamespace from pg_catalog.pg_class as home
        where home.oid = (select bound.tableoid from graphile_worker._hathi_limits as bound limit 1)
      )
  );
$hathi$;

-- Of these tasks, the ones without limits.
create or replace function graphile_worker._hathi_unlimited_tasks(task_ids integer[])
returns integer[] language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $hathi$
begin
  return array(
    select known.id
    from unnest(task_ids) with ordinality as known (id, nth)
    where not exists (
      select from graphile_worker._private_tasks as task
      join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
      where task.id = known.id
    )
    order by known.nth
  );
end;
$hathi$;

-- As JSON: which of these tasks have limits, and which of those limits were declared in code.
create or replace function graphile_worker._hathi_report_limits(task_ids integer[])
returns text language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $hathi$
begin
  return (
    select json_object_agg(task.id, exists (
      select from graphile_worker._hathi_limits as bound where bound.id = any (member.limit_ids) and bound.origin = 'code'
    ))
    from graphile_worker._private_tasks as task
    join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
    where task.id = any (task_ids)
  );
end;
$hathi$;
