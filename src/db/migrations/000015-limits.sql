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

-- False if another transaction kept one of them for too long.
create or replace function graphile_worker._hathi_lock_limits(limit_ids integer[])
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
begin
  perform 1 from graphile_worker._hathi_limits as bound where bound.id = any (limit_ids) order by bound.id for update;
  -- The snapshot of a stricter isolation level is older than the lock; only a write makes such a claim fail.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    update graphile_worker._hathi_limits as bound set claims = (bound.claims + 1) % 1000000 where bound.id = any (limit_ids);
  end if;
  return true;
exception when lock_not_available then
  return false;
end;
$hathi$;

-- How many jobs of these tasks are locked; of one key, if a path is given.
create or replace function graphile_worker._hathi_count_locked(task_ids integer[], path text[], key text)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set enable_indexscan = on set enable_indexonlyscan = on set enable_tidscan = on set enable_nestloop = on
as $hathi$
declare
  task_id integer;
  part integer;
  total integer := 0;
begin
  foreach task_id in array task_ids loop
    if path = '{}' then
      execute replace($sql$
        select count(*) from graphile_worker._private_jobs as job where job.task_id = {task} and job.locked_at is not null
      $sql$, '{task}', task_id::text) into part;
    else
      execute replace(replace(replace($sql$
        select count(*) from graphile_worker._private_jobs as job
        where {of_task} = {task} and job.locked_at is not null
          and graphile_worker._hathi_limit_key(job.payload, {path}::text[]) collate "C" = $1
      $sql$, '{task}', task_id::text), '{path}', quote_literal(path::text)), '{of_task}', case
        when graphile_worker._hathi_has_limit_index('r', task_id, path) then 'job.task_id + 0' else 'job.task_id'
      end) into part using key;
    end if;
    total := total + part;
  end loop;
  return total;
end;
$hathi$;

-- Of concurrency limits on everything whose rows are locked: null if one is exceeded or held back; otherwise whether three quarters of each are free.
create or replace function graphile_worker._hathi_are_within(limit_ids integer[])
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  return (
    select case
      when coalesce(bool_and(not now.is_held and now.taken <= now.places), true)
        then coalesce(bool_and(now.places >= 100 and now.taken <= now.places / 4), true)
    end
    from (
      select coalesce(o.places, l.places) as places,
        exists (
          select from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > clock_timestamp()
        ) as is_held,
        graphile_worker._hathi_count_locked(array(
          select task.id from graphile_worker._hathi_limited_tasks as m
          join graphile_worker._private_tasks as task on task.identifier = m.task
          where l.id = any (m.limit_ids)
        ), '{}', null) as taken
      from graphile_worker._hathi_limits as l
      left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
      where l.id = any (limit_ids) and l.kind = 'concurrency'
    ) as now
  );
end;
$hathi$;

-- By how many milliseconds a rate lets jobs be later than its slack at no cost, if they use so many tokens at once and tokens are spent `used_ms`
-- ahead: even if theirs are counted then, a tenth of the burst is left. Null if it does not.
create or replace function graphile_worker._hathi_rate_grace(
  burst integer, step double precision, tokens double precision, used_ms double precision
) returns double precision language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  return case when used_ms <= (burst * 0.9 - tokens) * step then least(150, burst * step / 2, (burst * 0.9 - tokens) * step) end;
end;
$hathi$;

-- How many tokens an unkeyed rate has for jobs that no slot is free for yet: of what may start within a good part of its slack half, since a token
-- is lost if its job cannot start in time; that is longer where the burst gives more. `ahead` is what a pool expects to start within 25 ms.
create or replace function graphile_worker._hathi_spare_tokens(
  bound_id integer, wanted integer, ahead integer, moment timestamptz, late_ms double precision
)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  return (
    select greatest(0, floor(least(ahead * within.ms / 25, tokens.jobs / 2 - wanted)))::integer
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    left join graphile_worker._hathi_limit_rates as r on r.limit_id = l.id and r.key = '*'
    cross join lateral (select coalesce(o.places, l.places) as places, coalesce(o.period_ms, l.period_ms) as period_ms) as rate
    cross join lateral (
      select slack.ms as slack, (rate.period_ms + slack.ms) / nullif(rate.places, 0) as step, coalesce(o.burst, l.burst) as burst,
        greatest(0, least(1e12, coalesce(date_part('epoch', r.tat - moment) * 1000, 0))) as used_ms
      from graphile_worker._hathi_rate_slack(rate.period_ms) as slack (ms)
    ) as given
    cross join lateral (
      select coalesce(graphile_worker._hathi_rate_grace(given.burst, given.step, l.cost, given.used_ms), 0) as ms
    ) as grace
    cross join lateral (select least(25, (given.slack + grace.ms) * 0.4) as ms) as within
    cross join lateral (
      select least(1e6, floor(((within.ms - given.used_ms) / given.step + given.burst + 1) / l.cost)) as jobs
    ) as tokens
    where l.id = bound_id and rate.places > 0 and grace.ms >= late_ms
  );
end;
$hathi$;

-- Whether each of these unkeyed rates has tokens for four more claims of so many jobs.
create or replace function graphile_worker._hathi_have_tokens(limit_ids integer[], jobs integer, moment timestamptz)
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  return (
    select coalesce(bool_and(
      coalesce(graphile_worker._hathi_spare_tokens(l.id, 0, 1000000, moment, 0), 0) >= greatest(100, jobs * 2)
    ), true)
    from graphile_worker._hathi_limits as l
    where l.id = any (limit_ids) and l.kind = 'rate'
  );
end;
$hathi$;

-- Of jobs that this transaction has locked, says which their limits admit, in order, up to `most`, and when each one starts. All limits of
-- `limit_ids` are asked, whatever their kind; their rows are locked. A job behind one that was refused in its queue is refused, too. Spends the
-- tokens of rates, for starts that may be `late_ms` later than their slack allows. `release_at` is the first moment at which a rate would admit
-- a job that it refused now.
--
-- Starts are given in runs: the next `counts[n]` admitted jobs start from `start_ats[n]` on, `steps[n]` milliseconds apart, and may be `slacks[n]` late. A run
-- without a rate has no start.
create or replace function graphile_worker._hathi_admit_jobs(
  limit_ids integer[], rows tid[], queue_ids integer[], most integer, moment timestamptz, horizon timestamptz, late_ms double precision,
  out admitted integer[], out counts integer[], out start_ats timestamptz[], out steps double precision[], out slacks double precision[],
  out release_at timestamptz
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  late constant interval := late_ms * interval '1 millisecond';
  bound record;
  b_id integer[] := '{}';
  b_kind text[] := '{}';
  b_path text[] := '{}';
  b_places integer[] := '{}';
  b_period double precision[] := '{}';
  b_burst integer[] := '{}';
  b_cost integer[] := '{}';
  b_cost_path text[] := '{}';
  b_tasks text[] := '{}';
  -- What is left of each limit and key that was met.
  s_name text[] := '{}';
  s_bound integer[] := '{}';
  s_key text[] := '{}';
  s_free integer[] := '{}';
  s_tat timestamptz[] := '{}';
  s_late timestamptz[] := '{}';
  s_places integer[] := '{}';
  s_window double precision[] := '{}';
  s_burst integer[] := '{}';
  s_slack double precision[] := '{}';
  s_spare integer[] := '{}';
  s_spare_until timestamptz[] := '{}';
  s_spent boolean[] := '{}';
  own record;
  job_payload json;
  refused_queues integer[] := '{}';
  state integer;
  met integer[];
  costs integer[];
  met_steps double precision[];
  met_spares integer[];
  start_at timestamptz;
  free_at timestamptz;
  slack double precision;
  step double precision;
  spare integer;
  is_admitted boolean;
  is_whole boolean;
  cost integer;
  name text;
  wanted_key text;
  base timestamptz;
  total integer := 0;
  at_once integer;
  grace double precision;
begin
  admitted := '{}';
  counts := '{}';
  start_ats := '{}';
  steps := '{}';
  slacks := '{}';
  for bound in
    select l.id, l.kind, l.path, coalesce(o.places, l.places) as places, coalesce(o.period_ms, l.period_ms) as period_ms,
      coalesce(o.burst, l.burst) as burst, l.cost, l.cost_path,
      case when l.kind = 'concurrency' then array(
        select task.id from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._private_tasks as task on task.identifier = member.task
        where l.id = any (member.limit_ids)
      ) end as tasks
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (limit_ids)
    order by l.id
  loop
    b_id := b_id || bound.id;
    b_kind := b_kind || bound.kind;
    b_path := b_path || bound.path::text;
    b_places := b_places || bound.places;
    b_period := b_period || bound.period_ms;
    b_burst := b_burst || bound.burst;
    b_cost := b_cost || bound.cost;
    b_cost_path := b_cost_path || bound.cost_path::text;
    b_tasks := b_tasks || bound.tasks::text;
  end loop;

  <<jobs>>
  for nth in 1 .. cardinality(rows) loop
    exit when total >= most;
    continue when queue_ids[nth] = any (refused_queues);
    met := '{}';
    costs := '{}';
    met_steps := '{}';
    met_spares := '{}';
    start_at := moment;
    slack := null;
    is_admitted := true;
    is_whole := false;
    job_payload := null;
    for b in 1 .. cardinality(b_id) loop
      if job_payload is null and (b_path[b] <> '{}' or b_cost_path[b] is not null) then
        select job.payload into job_payload from graphile_worker._private_jobs as job where job.ctid = rows[nth];
      end if;
      wanted_key := case
        when b_path[b] = '{}' then '*'
        else graphile_worker._hathi_limit_key(job_payload, b_path[b]::text[])
      end;
      name := b || wanted_key;
      state := array_position(s_name, name);
      if state is null then
        select o.places, o.period_ms, o.burst, r.tat, r.spare, r.spare_until,
          case when r.late_until <= horizon + interval '5 seconds' then r.late_until end as late_until, (
            select h.until from graphile_worker._hathi_limit_holds as h
            where h.limit_id = b_id[b] and h.key = wanted_key and h.until > moment
          ) as held_until
        into own
        from (select 1) as one
        left join graphile_worker._hathi_limit_rates as r on r.limit_id = b_id[b] and r.key = wanted_key
        left join graphile_worker._hathi_limit_overrides as o
          on o.limit_id = b_id[b] and o.key = wanted_key and wanted_key <> '*';
        s_name := s_name || name;
        s_bound := s_bound || b;
        s_key := s_key || wanted_key;
        s_free := s_free || case
          when own.held_until is not null then 0
          when b_kind[b] = 'concurrency'
            then coalesce(own.places, b_places[b])
              - graphile_worker._hathi_count_locked(b_tasks[b]::integer[], b_path[b]::text[], wanted_key)
        end;
        s_places := s_places || case when b_kind[b] = 'rate' then coalesce(own.places, b_places[b]) end;
        s_slack := s_slack || graphile_worker._hathi_rate_slack(coalesce(own.period_ms, b_period[b]));
        state := cardinality(s_name);
        s_window := s_window || coalesce(own.period_ms, b_period[b]) + s_slack[state];
        s_burst := s_burst || coalesce(own.burst, b_burst[b]);
        -- A time further ahead than any claim could have made it is from before the server's clock was set back, or the rate was raised.
        s_spare_until := s_spare_until || case
          when own.spare_until between moment and horizon + (2 * s_window[state] + 5000) * interval '1 millisecond' then own.spare_until
        end;
        s_spare := s_spare || case when s_spare_until[state] is null then 0 else least(own.spare, s_places[state] / 4) end;
        s_tat := s_tat || least(
          coalesce(own.tat, '-infinity'),
          greatest(horizon, own.late_until)
            + s_window[state] / nullif(s_places[state] - s_places[state] / 4, 0) * interval '1 millisecond' * greatest(
              s_burst[state] + 1, least(b_places[b], case when b_cost_path[b] is null then b_cost[b] end)
            )
        );
        s_late := s_late || own.late_until;
        s_spent := s_spent || coalesce(own.tat > s_tat[state], false);
        release_at := least(release_at, own.held_until);
      end if;
      if s_free[state] <= 0 then
        is_admitted := false;
        is_whole := is_whole or b_path[b] = '{}';
        exit;
      end if;
      cost := 1;
      spare := 0;
      step := null;
      if b_kind[b] = 'rate' then
        if s_places[state] <= 0 then
          is_admitted := false;
          is_whole := is_whole or b_path[b] = '{}';
          exit;
        end if;
        cost := least(
          coalesce(b_places[b], 1),
          case
            when b_cost_path[b] is null then b_cost[b]
            else graphile_worker._hathi_limit_number(job_payload, b_cost_path[b]::text[], 1000000)
          end
        );
        spare := greatest(s_spare[state], least(cost - 1 - s_burst[state], s_places[state] / 4));
        step := s_window[state] / (s_places[state] - spare);

        if nth = 1 and cardinality(b_id) = 1 and b_path[b] = '{}' and b_cost_path[b] is null
          and queue_ids is null
          and spare = 0 and cost - 1 <= s_burst[state] then
          -- One rate, and all jobs alike: their times are known without looking at them.
          base := greatest(s_tat[state], moment);
          at_once := least(cardinality(rows), most);
          grace := graphile_worker._hathi_rate_grace(
            s_burst[state], step, at_once::double precision * cost, date_part('epoch', base - moment) * 1000
          );
          if grace >= late_ms then
            admitted := array(select generate_series(1, at_once));
            counts := array[at_once];
            start_ats := array[moment];
            steps := array[0];
            slacks := array[s_slack[state] + grace - late_ms];
            s_tat[state] := greatest(base, moment + grace * interval '1 millisecond')
              + at_once::double precision * cost * step * interval '1 millisecond';
            s_spent[state] := true;
            exit jobs;
          elsif late_ms = 0 then
            total := floor(least(1e6, (date_part('epoch', horizon - base) * 1000 / step + 1 + s_burst[state]) / cost));
            at_once := floor(least(1e6, (date_part('epoch', moment - base) * 1000 / step + 1 + s_burst[state]) / cost));
            total := greatest(0, least(total, cardinality(rows), most));
            at_once := greatest(0, least(at_once, total));
            if total < cardinality(rows) then
              release_at := base + ((total + 1)::double precision * cost - 1 - s_burst[state]) * step * interval '1 millisecond';
            end if;
            admitted := array(select generate_series(1, total));
            if at_once > 0 then
              counts := counts || at_once;
              start_ats := start_ats || moment;
              steps := steps || 0::double precision;
              slacks := slacks || s_slack[state];
            end if;
            if total > at_once then
              counts := counts || (total - at_once);
              start_ats := start_ats || base + ((at_once + 1)::double precision * cost - 1 - s_burst[state]) * step * interval '1 millisecond';
              steps := steps || cost * step;
              slacks := slacks || s_slack[state];
            end if;
            if total > 0 then
              s_tat[state] := base + total::double precision * cost * step * interval '1 millisecond';
              s_spent[state] := true;
            end if;
            exit jobs;
          end if;
        end if;

        free_at := case
          when s_tat[state] = '-infinity' then moment
          else s_tat[state] + (cost - 1 - s_burst[state]) * step * interval '1 millisecond'
        end;
        start_at := greatest(start_at, free_at);
        slack := least(slack, s_slack[state]);
        if free_at > horizon then
          release_at := least(release_at, free_at);
          is_admitted := false;
          is_whole := is_whole or b_path[b] = '{}';
          exit;
        end if;
      end if;
      met := met || state;
      costs := costs || cost;
      met_steps := met_steps || step;
      met_spares := met_spares || spare;
    end loop;
    if not is_admitted then
      -- What is used up as a whole admits no other job either.
      exit when is_whole;
      refused_queues := refused_queues || queue_ids[nth];
      continue;
    end if;
    for m in 1 .. cardinality(met) loop
      state := met[m];
      s_free[state] := s_free[state] - 1;
      if met_steps[m] is not null then
        -- What a job costs beyond the burst is waited for before it starts, and what `spare` does not cover once more after it.
        s_tat[state] := greatest(
          s_tat[state], start_at + late - greatest(0, costs[m] - 1 - s_burst[state]) * met_steps[m] * interval '1 millisecond'
        ) + (costs[m] + greatest(0, costs[m] - 1 - s_burst[state] - met_spares[m])) * met_steps[m] * interval '1 millisecond';
        if costs[m] - 1 > s_burst[state] then
          s_spare[state] := met_spares[m];
          s_spare_until[state] := greatest(
            s_spare_until[state], start_at + late + (s_window[state] + s_slack[state]) * interval '1 millisecond'
          );
        end if;
        s_spent[state] := true;
        if late > interval '0' then
          s_late[state] := greatest(s_late[state], start_at + late);
        end if;
      end if;
    end loop;
    admitted := admitted || nth;
    total := total + 1;
    start_at := case when slack is not null then start_at end;
    if counts <> '{}' and start_ats[cardinality(counts)] is not distinct from start_at
      and slacks[cardinality(counts)] is not distinct from slack then
      counts[cardinality(counts)] := counts[cardinality(counts)] + 1;
    else
      counts := counts || 1;
      start_ats := start_ats || start_at;
      steps := steps || 0::double precision;
      slacks := slacks || slack;
    end if;
  end loop jobs;

  insert into graphile_worker._hathi_limit_rates as rate (limit_id, key, tat, free_at, late_until, spare, spare_until)
  select b_id[s_bound[nth]], s_key[nth], s_tat[nth],
    s_tat[nth] - s_burst[nth] * s_window[nth] / (s_places[nth] - s_spare[nth]) * interval '1 millisecond', s_late[nth], s_spare[nth], s_spare_until[nth]
  from generate_series(1, cardinality(s_name)) as nth
  where s_spent[nth]
  order by 1, 2
  on conflict (limit_id, key) do update set
    tat = excluded.tat, free_at = excluded.free_at, late_until = excluded.late_until, spare = excluded.spare, spare_until = excluded.spare_until;
end;
$hathi$;

-- Visits the keys of a task at one priority, from where the last visit ended, and locks their next jobs: of each key as many as its weight, and
-- more only if all keys together have too few. `rows` are in the order in which they should start, with the `keys` they belong to and, for each,
-- how much of its key's turn is used then. Of those beyond `wanted` each key gives half of its free places at most. `is_unfinished` says that
-- there are more keys than one call visits; `last_key` is the last that was visited.
create or replace function graphile_worker._hathi_find_turns(
  task_id integer, path text[], limit_ids integer[], level smallint, wanted integer, most integer,
  from_key text, from_used integer, forbidden text[], accepted text[], instant timestamptz, moment timestamptz, horizon timestamptz,
  out rows tid[], out keys text[], out useds integer[], out release_at timestamptz,
  out is_unfinished boolean, out last_key text, out is_contended boolean
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
declare
  max_visits constant integer := 1000;
  -- The condition on the task is spelt so that these indexes only can be used; the planner knows too little about keys to prefer them.
  is_indexed boolean;
  counts_text text := '';
  key_text text;
  suits text;
  free_text text := '1000000';
  release_text text := 'null::timestamptz';
  weight_text text := '1';
  walk_text text;
  bound record;
  upto text := '>';
  visited record;
  k_keys text[] := '{}';
  k_frees integer[] := '{}';
  k_shares integer[] := '{}';
  k_weights integer[] := '{}';
  visits integer := 0;
  total bigint := 0;
  growth integer;
begin
  is_unfinished := false;
  is_contended := false;
  is_indexed := graphile_worker._hathi_has_limit_index('w', task_id, path) and not exists (
    select from graphile_worker._hathi_limits as l
    join graphile_worker._hathi_limited_tasks as member on l.id = any (member.limit_ids)
    join graphile_worker._private_tasks as task on task.identifier = member.task
    where l.id = any (_hathi_find_turns.limit_ids) and l.kind = 'concurrency' and l.path = _hathi_find_turns.path
      and not graphile_worker._hathi_has_limit_index('r', task.id, l.path)
  );
  key_text := replace(
    $sql$ graphile_worker._hathi_limit_key(job.payload, {path}::text[]) collate "C" $sql$, '{path}', quote_literal(path::text)
  );
  for bound in
    select l.id, l.kind, coalesce(o.places, l.places) as places, coalesce(o.weight, l.weight) as weight, l.weight_path,
      coalesce(o.period_ms, l.period_ms) as period_ms,
      array(
        select task.id from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._private_tasks as task on task.identifier = member.task
        where l.id = any (member.limit_ids)
      ) as tasks
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (limit_ids) and l.path = _hathi_find_turns.path
    order by l.id desc
  loop
    release_text := release_text || replace($sql$, (
      select h.until from graphile_worker._hathi_limit_holds as h
      where h.limit_id = {id} and h.key = next.key and h.until > $7
    )$sql$, '{id}', bound.id::text);
    if bound.kind = 'concurrency' then
      free_text := free_text || replace(replace($sql$,
        coalesce((
          select o.places from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
        ), {places})$sql$, '{id}', bound.id::text), '{places}', bound.places::text);
      if not is_indexed then
        counts_text := counts_text || replace(replace(replace($sql$
          taken_{id} as materialized (
            select {key} as key, count(*)::integer as jobs
            from graphile_worker._private_jobs as job
            where job.task_id = any ({tasks}::integer[]) and job.locked_at is not null
            group by 1
          ),$sql$, '{id}', bound.id::text), '{tasks}', quote_literal(bound.tasks::text)), '{key}', key_text);
        free_text := free_text || replace(
          ' - coalesce((select taken.jobs from taken_{id} as taken where taken.key = next.key), 0)', '{id}', bound.id::text
        );
        continue;
      end if;
      for nth in 1 .. cardinality(bound.tasks) loop
        free_text := free_text || replace(replace($sql$ - (
          select count(*)::integer from graphile_worker._private_jobs as job
          where job.task_id + 0 = {task} and job.locked_at is not null and {key} = next.key
        )$sql$, '{task}', bound.tasks[nth]::text), '{key}', key_text);
      end loop;
    elsif bound.kind = 'rate' then
      release_text := release_text || replace(replace($sql$, (
        select r.free_at from graphile_worker._hathi_limit_rates as r
        where r.limit_id = {id} and r.key = next.key and r.free_at > $6
          and r.free_at < $6 + interval '2 milliseconds' * coalesce((
            select o.period_ms from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
          ), {period})
      )$sql$, '{id}', bound.id::text), '{period}', bound.period_ms::text);
    end if;
    if bound.weight <> 1 or bound.weight_path is not null or weight_text = '1' then
      weight_text := coalesce(
        replace(
          'graphile_worker._hathi_limit_number(next.payload, {path}::text[], 1000)', '{path}', quote_literal(bound.weight_path::text)
        ),
        bound.weight::text
      );
      weight_text := replace(replace($sql$coalesce((
        select o.weight from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
      ), {weight})$sql$, '{id}', bound.id::text), '{weight}', weight_text);
    end if;
  end loop;
  suits := replace(replace($sql$
    {of_task} = {task}
      and job.locked_at is null
      and job.attempts < job.max_attempts
      and job.job_queue_id is null
      and job.priority = $1
      and ($8::text[] is null or (job.flags ?| $8::text[]) is not true)
      and ($9::text[] is null or (job.flags ?| $9::text[]) is true)$sql$, '{task}', task_id::text),
    '{of_task}', case when is_indexed then 'job.task_id + 0' else 'job.task_id' end);

  if not is_indexed then
    -- The index is being built: the first jobs in line, as far as the limits of their keys go.
    execute replace(replace(replace(replace(replace($sql$
      with {counts} head as materialized (
        select job.ctid as tid, {key} as key, job.run_at, job.id, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and job.run_at <= $5
        order by job.run_at, job.id
        limit $3 + 200
        for update skip locked
      ), ranked as materialized (
        select head.tid, head.key, head.run_at, head.id, room.free,
          row_number() over (partition by head.key order by head.run_at, head.id) as nth
        from head
        join (
          select next.key, case when greatest({release}) is null then least({free}) else 0 end as free
          from (select head.key, min(head.run_at) as run_at, null::json as payload from head group by head.key) as next
        ) as room on room.key = head.key
      )
      select coalesce(array_agg(first.tid), '{}'), coalesce(array_agg(first.key), '{}'),
        coalesce(array_agg(1), '{}')
      from (
        select ranked.tid, ranked.key from ranked where ranked.nth <= ranked.free order by ranked.run_at, ranked.id limit $3
      ) as first
      where $2::integer is not null and $4::text is null
    $sql$, '{suits}', suits), '{release}', release_text), '{free}', free_text), '{key}', key_text), '{counts}', counts_text)
    into rows, keys, useds
    using level, wanted, least(wanted, most), null::text, instant, horizon, moment, forbidden, accepted;
    release_at := clock_timestamp() + interval '500 milliseconds';
    return;
  end if;

  walk_text := replace(replace(replace(replace(replace($sql$
    with recursive walk as (
      select 0 as nth, $2::text collate "C" as key, coalesce(room.free, 0) as free,
        greatest(coalesce(room.weight, 1) - $10::integer, 0) as share, coalesce(room.weight, 1) as weight,
        coalesce(least(room.free, greatest(room.weight - $10::integer, 0)), 0)::bigint as total, room.release_at
      from (select 1) as one
      left join lateral (
        select {key} as key, job.run_at, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and {key} = $2
        order by job.run_at, job.id
        limit 1
      ) as next on true
      left join lateral ({room}) as room on next.key is not null
      union all
      select walk.nth + 1, next.key, room.free, room.weight, room.weight, walk.total + least(room.free, room.weight), room.release_at
      from walk
      cross join lateral (
        select {key} as key, job.run_at, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and {key} > walk.key and {key} < $4
        order by {key}, job.run_at, job.id
        limit 1
      ) as next
      cross join lateral ({room}) as room
      where walk.total < $3 and walk.nth < $11
    )
    select
      coalesce(array_agg(walk.key order by walk.nth) filter (where walk.free > 0), '{}') as keys,
      coalesce(array_agg(walk.free order by walk.nth) filter (where walk.free > 0), '{}') as frees,
      coalesce(array_agg(walk.share order by walk.nth) filter (where walk.free > 0), '{}') as shares,
      coalesce(array_agg(walk.weight order by walk.nth) filter (where walk.free > 0), '{}') as weights,
      min(walk.release_at) as release_at,
      max(walk.nth) as visits,
      max(walk.total) as total,
      (array_agg(walk.key order by walk.nth desc))[1] as last_key
    from walk
  $sql$, '{room}', $sql$
    select
      case when next.run_at > $5 or greatest({release}) is not null then 0 else greatest(0, least({free})) end as free,
      {weight} as weight,
      case
        when next.run_at > $5 then $7 + (least(next.run_at, $5 + interval '1 day') - $5)
        else greatest({release})
      end as release_at
  $sql$), '{suits}', suits), '{release}', release_text), '{free}', free_text), '{weight}', weight_text);
  walk_text := replace(walk_text, '{key}', key_text);

  -- From where the last visit ended to the end of the keys, and then those before.
  for part in 1 .. 2 loop
    execute walk_text into visited
    using level, case part when 1 then from_key else '' end, most - total, upto, instant, horizon, moment, forbidden, accepted,
      case part when 1 then from_used else 0 end, max_visits - visits;
    k_keys := k_keys || visited.keys;
    k_frees := k_frees || visited.frees;
    k_shares := k_shares || visited.shares;
    k_weights := k_weights || visited.weights;
    release_at := least(release_at, visited.release_at);
    visits := visits + visited.visits;
    total := total + visited.total;
    last_key := visited.last_key;
    is_unfinished := visits >= max_visits and total < most;
    exit when total >= most or visits >= max_visits or from_key = '';
    upto := from_key;
  end loop;
  if k_keys = '{}' then
    rows := '{}';
    return;
  end if;

  growth := greatest(0, ceil((most - total)::numeric / greatest(1, (select sum(weight) from unnest(k_weights) as weight))));
  if total < most then
    growth := greatest(growth, 1);
  end if;
  execute replace(replace($sql$
    with line as materialized (
      select turn.nth as turn, turn.key, turn.free, turn.share, turn.weight, job.tid,
        row_number() over (partition by turn.nth order by job.run_at, job.id)::integer as nth
      from unnest($2::text[], $3::integer[], $4::integer[], $5::integer[]) with ordinality as turn (key, free, share, weight, nth)
      cross join lateral (
        select job.ctid as tid, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where {suits} and {key} = turn.key and job.run_at <= $7
        order by job.run_at, job.id
        limit least(turn.free, turn.share + turn.weight * $6)
        for update skip locked
      ) as job
    )
    select coalesce(array_agg(ranked.tid), '{}'), coalesce(array_agg(ranked.key), '{}'), coalesce(array_agg(ranked.used), '{}')
    from (
      select ordered.tid, ordered.key, ordered.used
      from (
        select line.tid, line.key, line.free, line.nth,
          case when line.nth <= line.share then line.weight - line.share + line.nth else (line.nth - line.share - 1) % line.weight + 1 end as used,
          row_number() over (
            order by (greatest(line.nth - line.share, 0) + line.weight - 1) / line.weight, line.turn, line.nth
          ) as place
        from line
      ) as ordered
      where ordered.place <= $10 or ordered.nth * 2 <= ordered.free
      order by ordered.place
      limit $11
    ) as ranked
  $sql$, '{suits}', suits), '{key}', key_text)
  into rows, keys, useds
  using level, k_keys, k_frees, k_shares, k_weights, growth, instant, forbidden, accepted, wanted, most;
  is_contended := rows = '{}' and most > 0 and wanted > 0;
end;
$hathi$;

-- Takes these jobs, in the order in which they should start. Gives them as `_hathi_take_in_order` does, which is quicker.
create or replace function graphile_worker._hathi_take_jobs(pool_id text, instant timestamptz, rows tid[], out jobs text)
language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  with claimed as (
    update graphile_worker._private_jobs as job
    set attempts = job.attempts + 1, locked_by = pool_id, locked_at = instant
    from unnest(rows) with ordinality as line (tid, place)
    where job.ctid = line.tid
    returning job.*, line.place,
      pg_column_size(job.payload) > 8000
        or (pg_column_size(job.payload) > 1000 and pg_column_compression(job.payload) is not null) as is_large
  )
  select string_agg(
    concat(
      '["', claimed.id, '",', coalesce(claimed.job_queue_id::text, 'null'), ',', claimed.task_id, ',',
      case when claimed.is_large then 'null' else claimed.payload::text end, ',',
      claimed.priority, ',', least(greatest(date_part('epoch', claimed.run_at), -1e15), 1e15), ',',
      claimed.attempts, ',', claimed.max_attempts, ',',
      case
        when claimed.last_error is null then 'null'
        when pg_column_size(claimed.last_error) > 8000 or pg_column_compression(claimed.last_error) is not null
          then to_json(substr(claimed.last_error, 1, 8000))::text
        else to_json(claimed.last_error)::text
      end, ',',
      least(greatest(date_part('epoch', claimed.created_at), -1e15), 1e15), ',',
      least(greatest(date_part('epoch', claimed.updated_at), -1e15), 1e15), ',',
      case when claimed.key is null then 'null' else to_json(claimed.key)::text end, ',', claimed.revision, ',',
      coalesce(claimed.flags::text, 'null'), case when claimed.is_large then ',1]' else ']' end
    ),
    ',' order by claimed.place
  ) into jobs
  from claimed;
end;
$hathi$;

-- When the jobs of a verdict start, as JSON: [how many jobs of the claim come before, how many start like this, milliseconds after `began_at`,
-- milliseconds from one to the next, slack, late] for each run. `taken` says how many jobs the claim has already.
create or replace function graphile_worker._hathi_start_texts(
  taken integer, counts integer[], start_ats timestamptz[], steps double precision[], slacks double precision[],
  late_ms double precision, began_at timestamptz
) returns text[] language plpgsql stable set search_path = pg_catalog, pg_temp as $hathi$
declare
  texts text[] := '{}';
  before integer := taken;
begin
  for nth in 1 .. cardinality(counts) loop
    if start_ats[nth] is not null then
      texts := texts || concat(
        '[', before, ',', counts[nth], ',', date_part('epoch', start_ats[nth] - began_at) * 1000, ',', steps[nth], ',', slacks[nth], ',', late_ms, ']'
      );
    end if;
    before := before + counts[nth];
  end loop;
  return texts;
end;
$hathi$;

-- Claims jobs of limited tasks: up to `wanted` for free slots, and up to `ahead` more for which the limits have places to spare. `turns` says
-- where each task's keys are to be visited from: {"task id": [key, jobs taken of it in its turn]}; the new ones are returned. `nth` makes
-- the tasks take turns. `timed_ahead` is how many of those ahead may be jobs with a time to start, which have to start soon. `lates` says by how many milliseconds the pool may be later than the slack of a rate allows: {"task id": milliseconds}.
--
-- `jobs` is one JSON text as `_hathi_claim_jobs` gives it. `starts` is an array of what `_hathi_start_texts` gives, for jobs that have a time to
-- start, with the times since this function began; `took_ms` is how long it took. `due_in_ms` is when to claim again; not above zero if something was held
-- by another transaction. `is_blocked` says that every limited task has a limit that is used up as a whole, so that new jobs change nothing.
-- `are_wide` says that the tasks have no limits but on everything, with at most one rate each, that three quarters of their many places are free, and that
-- their rates have tokens for several more claims: then the next claim may be late.
create or replace function graphile_worker._hathi_claim_within_limits(
  pool_id text, task_ids integer[], wanted integer, ahead integer, per_queue integer, forbidden text[], accepted text[], clock timestamptz,
  with_queues boolean, turns jsonb, nth integer, relaxed boolean, lates jsonb, timed_ahead integer, is_late boolean,
  out jobs text, out starts text, out took_ms double precision, out due_in_ms double precision, out is_blocked boolean, out new_turns jsonb,
  out are_wide boolean
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_hashjoin = off
  set enable_mergejoin = off
  set enable_sort = off
  set enable_incremental_sort = off
  set enable_material = off
  set jit = off
  set extra_float_digits = 1
  set plan_cache_mode = force_generic_plan
as $hathi$
declare
  instant constant timestamptz := coalesce(clock, now());
  began_at constant timestamptz := clock_timestamp();
  moment timestamptz;
  horizon timestamptz;
  member record;
  bound record;
  -- Limits on everything, and how many places of each are free.
  w_id integer[] := '{}';
  w_free integer[] := '{}';
  w_places integer[] := '{}';
  -- The tasks, in the order in which they are served.
  t_id integer[] := '{}';
  t_limits text[] := '{}';
  t_path text[] := '{}';
  t_admit text[] := '{}';
  t_rated boolean[] := '{}';
  t_alike boolean[] := '{}';
  t_late double precision[] := '{}';
  t_durable boolean[] := '{}';
  t_done boolean[] := '{}';
  t_blocked boolean[] := '{}';
  level integer := -32769;
  free integer;
  room integer := wanted + greatest(ahead, 0);
  left_now integer := wanted;
  most integer;
  found record;
  queued record;
  verdict record;
  head record;
  taken_rows tid[];
  taken_queues integer[];
  taken integer := 0;
  job_texts text[] := '{}';
  start_texts text[] := '{}';
  mine integer[];
  is_durable boolean := false;
  is_contended boolean := false;
  due timestamptz;
  has_queued boolean;
  has_verdict boolean;
  spare integer;
  last_place integer;
  -- Of a late claim: all that it has taken, and what still needs tokens, by task and position.
  could_be_late boolean;
  late_rows tid[] := '{}';
  l_task integer[] := '{}';
  l_first integer[] := '{}';
  l_last integer[] := '{}';
begin
  is_blocked := false;
  are_wide := false;
  new_turns := turns;
  took_ms := 0;
  if room <= 0 then
    return;
  end if;
  mine := array(
    select distinct bound_id
    from graphile_worker._hathi_limited_tasks as m
    join graphile_worker._private_tasks as task on task.identifier = m.task
    cross join unnest(m.limit_ids) as bound_id
    where task.id = any (task_ids)
  );
  if mine = '{}' then
    return;
  end if;
  if not is_late and not graphile_worker._hathi_lock_limits(mine) then
    due_in_ms := 0;
    return;
  end if;
  moment := clock_timestamp();
  horizon := moment + interval '50 milliseconds';

  for bound in
    select l.id, coalesce(o.places, l.places) as places, array(
        select task.id from graphile_worker._hathi_limited_tasks as m
        join graphile_worker._private_tasks as task on task.identifier = m.task
        where l.id = any (m.limit_ids)
      ) as tasks, (
        select h.until from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > moment
      ) as held_until, l.kind
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (mine) and (l.kind = 'concurrency' and l.path = '{}' or exists (
      select from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > moment
    ))
  loop
    w_id := w_id || bound.id;
    w_places := w_places || bound.places;
    w_free := w_free || case
      when bound.held_until is not null then 0
      when is_late then bound.places / 4 * 3
      else bound.places - graphile_worker._hathi_count_locked(bound.tasks, '{}', null)
    end;
    due := least(due, bound.held_until);
  end loop;

  for member in
    select known.*, array(
        select l.id from graphile_worker._hathi_limits as l
        where l.id = any (known.limit_ids)
          and (l.kind = 'rate' or l.kind = 'concurrency' and l.path <> '{}' and l.path <> known.path)
      ) as admit, own.is_rated, own.is_durable, own.has_one_rate
    from (
      select task.id, m.limit_ids, m.since, coalesce((
          select l.path from graphile_worker._hathi_limits as l
          where l.id = any (m.limit_ids) and l.path <> '{}'
          order by l.kind <> 'fair', l.kind <> 'concurrency', l.id
          limit 1
        ), '{}') as path
      from graphile_worker._hathi_limited_tasks as m
      join graphile_worker._private_tasks as task on task.identifier = m.task
      where task.id = any (task_ids)
    ) as known
    cross join lateral (
      select coalesce(bool_or(l.kind = 'rate'), false) as is_rated,
        coalesce(bool_or(l.kind = 'rate' or l.kind = 'concurrency' and l.path <> '{}'), false) as is_durable,
        count(*) filter (where l.kind = 'rate') = 1 and bool_and(l.path = '{}' and l.cost_path is null) as has_one_rate
      from graphile_worker._hathi_limits as l
      where l.id = any (known.limit_ids)
    ) as own
    order by hashint4(known.id + nth)
  loop
    t_id := t_id || member.id;
    t_limits := t_limits || member.limit_ids::text;
    t_path := t_path || member.path::text;
    t_admit := t_admit || member.admit::text;
    t_rated := t_rated || member.is_rated;
    t_alike := t_alike || member.has_one_rate;
    t_durable := t_durable || member.is_durable;
    t_late := t_late || least(5000, coalesce((lates ->> member.id::text)::double precision, 0));
    t_blocked := t_blocked || false;
    -- Claims that knew nothing of the limit may still be under way.
    t_done := t_done || (member.since between moment - interval '250 milliseconds' and moment + interval '250 milliseconds');
    if t_done[cardinality(t_done)] then
      due := least(due, member.since + interval '250 milliseconds');
    end if;
  end loop;

  has_queued := with_queues and exists (
    select from graphile_worker._private_jobs as job where job.is_available and job.job_queue_id is not null
  );
  could_be_late := not exists (
      select from graphile_worker._hathi_limits as l
      where l.id = any (mine) and (l.kind = 'fair' or l.path <> '{}' or l.cost_path is not null)
    )
    and not exists (
      select from unnest(t_rated, t_alike) as task (is_rated, has_one) where task.is_rated and (has_queued or not task.has_one)
    );
  if is_late and not could_be_late then
    raise sqlstate 'HT001';
  end if;
  for phase in 0 .. 1 loop
    if (phase + nth) % 2 = 0 and has_queued then
      -- Jobs of named queues.
      for t in 1 .. cardinality(t_id) loop
        continue when t_done[t];
        free := (select min(w_free[w]) from generate_subscripts(w_id, 1) as w where w_id[w] = any (t_limits[t]::integer[]));
        most := least(left_now, coalesce(free, left_now));
        t_blocked[t] := t_blocked[t] or coalesce(free <= 0, false);
        continue when most <= 0;
        select * into queued
        from graphile_worker._hathi_scan_queues(
          -- Jobs that have a time to start cannot wait for one another.
          array[t_id[t]], most, case when t_rated[t] then 1 else per_queue end, forbidden, accepted, instant
        );
        is_contended := is_contended or queued.contended;
        continue when queued.rows = '{}';
        select * into verdict
        from graphile_worker._hathi_admit_jobs(
          t_limits[t]::integer[], queued.rows, queued.queue_ids, most, moment, horizon, t_late[t]
        );
        due := least(due, verdict.release_at);
        continue when verdict.admitted = '{}';
        taken_rows := array(select queued.rows[a] from unnest(verdict.admitted) with ordinality as admitted (a, place) order by place);
        taken_queues := array(select distinct queued.queue_ids[a] from unnest(verdict.admitted) as a);
        start_texts := start_texts || graphile_worker._hathi_start_texts(
          taken, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[t], began_at
        );
        job_texts := job_texts || graphile_worker._hathi_take_jobs(pool_id, instant, taken_rows);
        update graphile_worker._private_job_queues as queue
        set locked_by = pool_id, locked_at = instant
        where queue.id = any (taken_queues);
        is_durable := true;
        most := cardinality(taken_rows);
        taken := taken + most;
        room := room - most;
        left_now := greatest(0, left_now - most);
        for w in 1 .. cardinality(w_id) loop
          if w_id[w] = any (t_limits[t]::integer[]) then
            w_free[w] := w_free[w] - most;
          end if;
        end loop;
      end loop;
    end if;

    if (phase + nth) % 2 = 1 then
      while room > 0 loop
        select min(first.priority) into level
        from unnest(t_id, t_done) as task (id, is_done)
        cross join lateral (
          select job.priority
          from graphile_worker._private_jobs as job
          where job.locked_at is null
            and job.attempts < job.max_attempts
            and job.job_queue_id is null
            and job.task_id = task.id
            and job.priority > level
          order by job.priority
          limit 1
        ) as first
        where not task.is_done;
        exit when level is null;
        for t in 1 .. cardinality(t_id) loop
          continue when t_done[t];
          loop
            free := (select min(w_free[w]) from generate_subscripts(w_id, 1) as w where w_id[w] = any (t_limits[t]::integer[]));
            if free <= 0 then
              t_blocked[t] := true;
              t_done[t] := true;
              exit;
            end if;
            -- Ahead of the free slots only where the limit has places to spare: what is held takes a place.
            spare := room - left_now;
            if t_rated[t] then
              spare := case when least(spare, timed_ahead) > 0 and t_alike[t] then coalesce(graphile_worker._hathi_spare_tokens(
                (t_admit[t]::integer[])[1], left_now, least(spare, timed_ahead), moment, t_late[t]
              ), 0) else 0 end;
            end if;
            most := least(room, coalesce(free, room), left_now + least(
              spare, case when free is not null then greatest(0, free - left_now) / 2 end
            ));
            exit when most <= 0;
            if t_path[t] = '{}' then
              select coalesce(array_agg(next.tid), '{}') as rows, false as is_unfinished, null::timestamptz as release_at,
                null::text[] as keys, null::integer[] as useds, null::text as last_key, false as is_contended
              into found
              from (
                select job.ctid as tid
                from graphile_worker._private_jobs as job
                where job.locked_at is null
                  and job.attempts < job.max_attempts
                  and job.job_queue_id is null
                  and job.task_id = t_id[t]
                  and job.priority = level
                  and job.run_at <= instant
                  and (forbidden is null or (job.flags ?| forbidden) is not true)
                  and (accepted is null or (job.flags ?| accepted) is true)
                order by job.run_at, job.id
                limit most
                for update skip locked
              ) as next;
            else
              select * into found
              from graphile_worker._hathi_find_turns(
                t_id[t], t_path[t]::text[], t_limits[t]::integer[], level::smallint, left_now, most,
                coalesce(new_turns -> t_id[t]::text ->> 0, ''), coalesce((new_turns -> t_id[t]::text ->> 1)::integer, 0),
                forbidden, accepted, instant, moment, horizon
              );
              due := least(due, found.release_at);
              is_contended := is_contended or found.is_contended;
              if found.is_unfinished then
                is_contended := true;
                new_turns := jsonb_set(new_turns, array[t_id[t]::text], jsonb_build_array(found.last_key, 1000000));
              end if;
            end if;

            taken_rows := found.rows;
            has_verdict := taken_rows <> '{}' and t_admit[t] <> '{}' and not is_late;
            if has_verdict then
              select * into verdict
              from graphile_worker._hathi_admit_jobs(t_admit[t]::integer[], taken_rows, null, most, moment, horizon, t_late[t]);
              due := least(due, verdict.release_at);
              taken_rows := case
                when verdict.admitted[cardinality(verdict.admitted)] = cardinality(verdict.admitted) then found.rows[1:cardinality(verdict.admitted)]
                else array(select found.rows[a] from unnest(verdict.admitted) with ordinality as admitted (a, place) order by place)
              end;
            end if;
            if cardinality(taken_rows) > 0 then
              if has_verdict then
                start_texts := start_texts || graphile_worker._hathi_start_texts(
                  taken, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[t], began_at
                );
              end if;
              if is_late and t_admit[t] <> '{}' then
                l_task := l_task || t;
                l_first := l_first || taken + 1;
                l_last := l_last || taken + cardinality(taken_rows);
              end if;
              if is_late then
                late_rows := late_rows || taken_rows;
              end if;
              job_texts := job_texts || case
                when t_path[t] = '{}' then graphile_worker._hathi_take_in_order(pool_id, instant, taken_rows)
                else graphile_worker._hathi_take_jobs(pool_id, instant, taken_rows)
              end;
              taken := taken + cardinality(taken_rows);
              room := room - cardinality(taken_rows);
              left_now := greatest(0, left_now - cardinality(taken_rows));
              is_durable := is_durable or t_durable[t];
              for w in 1 .. cardinality(w_id) loop
                if w_id[w] = any (t_limits[t]::integer[]) then
                  w_free[w] := w_free[w] - cardinality(taken_rows);
                  is_durable := is_durable or w_free[w] < w_places[w] / 2.0;
                end if;
              end loop;
              if t_path[t] <> '{}' and not found.is_unfinished and found.keys[1] is not null then
                last_place := cardinality(found.rows);
                if has_verdict then
                  last_place := verdict.admitted[cardinality(verdict.admitted)];
                end if;
                new_turns := jsonb_set(
                  new_turns, array[t_id[t]::text], jsonb_build_array(found.keys[last_place], found.useds[last_place])
                );
              end if;
              -- There may be more of the same keys.
              continue when t_path[t] <> '{}' and room > 0 and not found.is_unfinished;
            elsif found.rows <> '{}' and t_path[t] = '{}' then
              -- A rate that admits nothing now.
              t_done[t] := true;
              t_blocked[t] := true;
            end if;
            if room > 0 and t_path[t] = '{}' and not t_done[t] then
              select job.run_at into head
              from graphile_worker._private_jobs as job
              where job.locked_at is null
                and job.attempts < job.max_attempts
                and job.job_queue_id is null
                and job.task_id = t_id[t]
                and job.priority = level
                and (forbidden is null or (job.flags ?| forbidden) is not true)
                and (accepted is null or (job.flags ?| accepted) is true)
              order by job.run_at, job.id
              limit 1;
              if head.run_at > instant then
                due := least(due, moment + (least(head.run_at, instant + interval '1 day') - instant));
              elsif cardinality(taken_rows) < most then
                -- Another transaction holds it, or a rate refused it; then the time of its release is known.
                is_contended := is_contended
                  or head.run_at is not null and (not has_verdict or cardinality(taken_rows) = cardinality(found.rows));
              end if;
            end if;
            exit;
          end loop;
        end loop;
      end loop;
    end if;
  end loop;

  if is_late and (taken > 0 or true = any (t_blocked)) then
    if true = any (t_blocked) or not graphile_worker._hathi_lock_limits(mine) then
      raise sqlstate 'HT001';
    end if;
    moment := clock_timestamp();
    for l in 1 .. cardinality(l_task) loop
      select * into verdict
      from graphile_worker._hathi_admit_jobs(
        t_admit[l_task[l]]::integer[], late_rows[l_first[l]:l_last[l]], null, taken, moment, moment + interval '50 milliseconds', t_late[l_task[l]]
      );
      if cardinality(verdict.admitted) < l_last[l] - l_first[l] + 1 then
        raise sqlstate 'HT001';
      end if;
      start_texts := start_texts || graphile_worker._hathi_start_texts(
        l_first[l] - 1, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[l_task[l]], began_at
      );
    end loop;
    are_wide := graphile_worker._hathi_are_within(mine);
    if are_wide is null then
      raise sqlstate 'HT001';
    end if;
    is_durable := is_durable or not are_wide;
    are_wide := are_wide and graphile_worker._hathi_have_tokens(mine, taken, moment);
  elsif not is_late and could_be_late then
    are_wide := coalesce((
        select bool_and(w_places[w] >= 100 and w_places[w] - w_free[w] <= w_places[w] / 4) from generate_subscripts(w_id, 1) as w
      ), true)
      and graphile_worker._hathi_have_tokens(mine, taken, moment);
  end if;

  if taken > 0 then
    jobs := '[' || array_to_string(job_texts, ',') || ']';
    starts := '[' || array_to_string(start_texts, ',') || ']';
    -- A claim that the server forgot in a crash would free a place that is taken. Only while less than half of a limit is used need it not last:
    -- then the limit can be exceeded by as much, until the forgotten runs end.
    if relaxed and not is_durable then
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  if room > 0 then
    if has_queued then
      due := least(due, moment + (least(
        graphile_worker._hathi_next_due(t_id, forbidden, accepted, instant, '{}', '{}', '{}'), instant + interval '1 day'
      ) - instant));
    end if;
    is_blocked := not false = any (t_blocked) and not has_queued;
    due_in_ms := case
      when is_contended then 0
      when due is not null then greatest(1, date_part('epoch', due - clock_timestamp()) * 1000)
    end;
  end if;
  took_ms := date_part('epoch', clock_timestamp() - began_at) * 1000;
end;
$hathi$;

-- Claims jobs of limited tasks. `may_be_late` says that the last claim found places plenty.
create or replace function graphile_worker._hathi_claim_limited(
  pool_id text, task_ids integer[], wanted integer, ahead integer, per_queue integer, forbidden text[], accepted text[], clock timestamptz,
  with_queues boolean, turns jsonb, nth integer, relaxed boolean, lates jsonb, timed_ahead integer, may_be_late boolean,
  out jobs text, out starts text, out took_ms double precision, out due_in_ms double precision, out is_blocked boolean, out new_turns jsonb,
  out are_wide boolean
) language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  -- A stricter isolation level would count what there was before.
  if may_be_late and current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    begin
      select claimed.* into jobs, starts, took_ms, due_in_ms, is_blocked, new_turns, are_wide
      from graphile_worker._hathi_claim_within_limits(
        pool_id, task_ids, wanted, ahead, per_queue, forbidden, accepted, clock, with_queues, turns, nth, relaxed, lates, timed_ahead, true
      ) as claimed;
      return;
    exception when sqlstate 'HT001' then
      -- Others were quicker: nothing was taken.
      null;
    end;
  end if;
  select claimed.* into jobs, starts, took_ms, due_in_ms, is_blocked, new_turns, are_wide
  from graphile_worker._hathi_claim_within_limits(
    pool_id, task_ids, wanted, ahead, per_queue, forbidden, accepted, clock, with_queues, turns, nth, relaxed, lates, timed_ahead, false
  ) as claimed;
end;
$hathi$;

-- Notes the limits of these tasks as a worker's code defines them, instead of what was declared before; tasks that no definition names have none.
-- Limits that were made at run time stay. `definitions` is an array of objects; `tasks` in each says which tasks it limits.
create or replace function graphile_worker._hathi_declare_limits(tasks text[], definitions jsonb, declared_by text)
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  changes integer;
  total integer := 0;
  task_name text;
  ids integer[];
begin
  insert into graphile_worker._hathi_limits as old
    (scope, name, kind, path, places, period_ms, burst, weight, weight_path, cost, cost_path, declared_by)
  select new.scope, new.name, new.kind, new.path, new.places, new.period_ms, new.burst, new.weight, new.weight_path, new.cost,
    new.cost_path, _hathi_declare_limits.declared_by
  from jsonb_to_recordset(definitions) as new (
    scope text, name text, kind text, path text[], places integer, period_ms double precision, burst integer,
    weight integer, weight_path text[], cost integer, cost_path text[]
  )
  order by new.scope, new.name, new.kind, new.path
  on conflict (scope, name, kind, path) do update set
    places = excluded.places, period_ms = excluded.period_ms, burst = excluded.burst, weight = excluded.weight,
    weight_path = excluded.weight_path, cost = excluded.cost, cost_path = excluded.cost_path, origin = 'code',
    declared_at = now(), declared_by = excluded.declared_by
  where (old.places, old.period_ms, old.burst, old.weight, old.weight_path, old.cost, old.cost_path, old.origin)
    is distinct from (excluded.places, excluded.period_ms, excluded.burst, excluded.weight, excluded.weight_path, excluded.cost,
      excluded.cost_path, 'code');
  get diagnostics total = row_count;

  for task_name in select distinct name from unnest(tasks) as name order by name loop
    perform 1 from graphile_worker._hathi_limited_tasks as member where member.task = task_name for update;
    ids := array(
      select bound.id
      from jsonb_array_elements(definitions) as new (definition)
      join graphile_worker._hathi_limits as bound
        on bound.scope = new.definition ->> 'scope' and bound.name = new.definition ->> 'name' and bound.kind = new.definition ->> 'kind'
        and bound.path = array(select jsonb_array_elements_text(new.definition -> 'path'))
      where new.definition -> 'tasks' ? task_name
      union
      select bound.id
      from graphile_worker._hathi_limited_tasks as member
      join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
      where member.task = task_name and bound.origin = 'set'
      order by 1
    );
    if ids = '{}' then
      delete from graphile_worker._hathi_limited_tasks as member where member.task = task_name;
    else
      insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
      values (task_name, ids)
      on conflict (task) do update set limit_ids = excluded.limit_ids
      where member.limit_ids <> excluded.limit_ids;
    end if;
    get diagnostics changes = row_count;
    total := total + changes;
  end loop;
  if total > 0 then
    perform pg_notify('hathi:limits', 'changed');
  end if;
  return total > 0;
end;
$hathi$;

-- The limit that is meant; null if there is none, an error if there are several.
create or replace function graphile_worker._hathi_find_limit(name text, with_key boolean, kind text, path text[])
returns integer language plpgsql stable set search_path = pg_catalog, pg_temp as $hathi$
declare
  found_ids integer[];
  described text;
begin
  select array_agg(bound.id), string_agg(
    format('%s of %s %L%s', bound.kind, bound.scope, bound.name,
      case when bound.path = '{}' then '' else ' by ' || array_to_string(bound.path, '.') end), '; ' order by bound.id
  ) into found_ids, described
  from graphile_worker._hathi_limits as bound
  where bound.name = _hathi_find_limit.name
    and (_hathi_find_limit.kind is null or bound.kind = _hathi_find_limit.kind)
    and case when _hathi_find_limit.path is null then (bound.path <> '{}') = with_key else bound.path = _hathi_find_limit.path end
    and exists (select from graphile_worker._hathi_limited_tasks as member where bound.id = any (member.limit_ids));
  if cardinality(found_ids) > 1 then
    raise exception 'Several limits are called ''%'': %.', _hathi_find_limit.name, described
      using errcode = '22023', hint = 'Say which one with its kind (concurrency, rate or fair) or the path of its key.';
  end if;
  return found_ids[1];
end;
$hathi$;

-- Changes a limit at run time, for all processes and until it is cleared: for one key, or for the limit itself. Null leaves a value as it is. A
-- task without such a limit gets one, unless a key is given.
create or replace function graphile_worker.set_limit(
  name text, key text default null, places integer default null, weight integer default null, burst integer default null,
  period interval default null, kind text default null, path text[] default null
) returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  bound_id integer := graphile_worker._hathi_find_limit(set_limit.name, set_limit.key is not null, set_limit.kind, set_limit.path);
  period_ms constant double precision := date_part('epoch', set_limit.period) * 1000;
  whose constant text := case
    when set_limit.key is null then '*'
    else graphile_worker._hathi_limit_key(to_json(set_limit.key), '{}')
  end;
begin
  if set_limit.places < 0 or set_limit.weight not between 1 and 1000 or set_limit.burst < 0 or period_ms < 100 then
    raise exception 'A limit must be at least 0, a weight 1 to 1000, a burst at least 0 and a period at least 100 ms.' using errcode = '22023';
  end if;
  if bound_id is null then
    if set_limit.key is not null or set_limit.places is null then
      raise exception 'There is no limit ''%''%.', set_limit.name, case when set_limit.key is null then '' else ' with a key' end
        using errcode = '22023', hint = 'Declare it in a task''s options, or give a limit for the whole task first.';
    end if;
    if coalesce(set_limit.kind, 'concurrency') = 'rate' and period_ms is null then
      raise exception 'A rate needs a period.' using errcode = '22023';
    end if;
    insert into graphile_worker._hathi_limits (scope, name, kind, path, places, period_ms, burst, weight, origin)
    values (
      'task', set_limit.name, coalesce(set_limit.kind, 'concurrency'), coalesce(set_limit.path, '{}'), set_limit.places, period_ms,
      coalesce(set_limit.burst, 0), coalesce(set_limit.weight, 1), 'set'
    )
    on conflict (scope, name, kind, path) do update set
      places = excluded.places, period_ms = excluded.period_ms, burst = excluded.burst, weight = excluded.weight, origin = 'set'
    returning id into bound_id;
    insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
    values (set_limit.name, array[bound_id])
    on conflict (task) do update set limit_ids = member.limit_ids || excluded.limit_ids;
  else
    insert into graphile_worker._hathi_limit_overrides as old (limit_id, key, places, period_ms, burst, weight, set_by)
    values (bound_id, whose, set_limit.places, period_ms, set_limit.burst, set_limit.weight, session_user)
    on conflict (limit_id, key) do update set
      places = coalesce(excluded.places, old.places), period_ms = coalesce(excluded.period_ms, old.period_ms),
      burst = coalesce(excluded.burst, old.burst), weight = coalesce(excluded.weight, old.weight), set_at = now(), set_by = excluded.set_by;
  end if;
  -- What was blocked by the old rate is looked at again.
  update graphile_worker._hathi_limit_rates as rate
  set free_at = now()
  where rate.limit_id = bound_id and (whose = '*' or rate.key = whose) and rate.free_at > now();
  perform pg_notify('hathi:limits', 'changed');
end;
$hathi$;

-- Takes back what `set_limit` changed; false if there was nothing. Without a key, the limit itself is meant, not its keys.
create or replace function graphile_worker.clear_limit(
  name text, key text default null, kind text default null, path text[] default null
) returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  bound_id constant integer :=
    graphile_worker._hathi_find_limit(clear_limit.name, clear_limit.key is not null, clear_limit.kind, clear_limit.path);
  whose constant text := case
    when clear_limit.key is null then '*'
    else graphile_worker._hathi_limit_key(to_json(clear_limit.key), '{}')
  end;
  changes integer;
  total integer;
begin
  delete from graphile_worker._hathi_limit_overrides as old where old.limit_id = bound_id and old.key = whose;
  get diagnostics total = row_count;
  if whose = '*' then
    perform 1 from graphile_worker._hathi_limits as bound where bound.id = bound_id and bound.origin = 'set';
    if found then
      update graphile_worker._hathi_limited_tasks as member
      set limit_ids = array_remove(member.limit_ids, bound_id)
      where bound_id = any (member.limit_ids);
      get diagnostics changes = row_count;
      total := total + changes;
      delete from graphile_worker._hathi_limited_tasks as member where member.limit_ids = '{}';
      delete from graphile_worker._hathi_limits as bound where bound.id = bound_id;
    end if;
  end if;
  if total > 0 then
    update graphile_worker._hathi_limit_rates as rate
    set free_at = now()
    where rate.limit_id = bound_id and (whose = '*' or rate.key = whose) and rate.free_at > now();
    perform pg_notify('hathi:limits', 'changed');
  end if;
  return total > 0;
end;
$hathi$;

-- Holds back what these jobs say, for so many milliseconds from now: the limit that they name, or else the key of their rate limit, or else the key
-- of another limit, or else their whole task. A task without limits gets a row for as long as it is held.
create or replace function graphile_worker._hathi_hold_limits(
  pool_id text, job_ids bigint[], delays double precision[], names text[], reasons text[]
) returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  job record;
  bound_id integer;
  whose text;
begin
  for job in
    select row.id, row.payload, task.identifier, asked.delay, asked.name, asked.reason
    from unnest(job_ids, delays, names, reasons) as asked (id, delay, name, reason)
    join graphile_worker._private_jobs as row on row.id = asked.id and row.locked_by = pool_id
    join graphile_worker._private_tasks as task on task.id = row.task_id
    order by row.id
  loop
    select bound.id, case
        when bound.path = '{}' or job.name is not null and bound.scope = 'shared' and bound.path = '{}' then '*'
        else graphile_worker._hathi_limit_key(job.payload, bound.path)
      end
    into bound_id, whose
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where member.task = job.identifier and (job.name is null or bound.name = job.name)
    order by bound.kind <> 'rate', bound.path = '{}', bound.id
    limit 1;
    if not found then
      insert into graphile_worker._hathi_limits (scope, name, kind, origin)
      values ('task', job.identifier, 'fair', 'set')
      on conflict (scope, name, kind, path) do update set origin = 'set'
      returning id into bound_id;
      whose := '*';
      insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
      values (job.identifier, array[bound_id])
      on conflict (task) do update set limit_ids = array(
        select distinct id from unnest(member.limit_ids || excluded.limit_ids) as id order by 1
      );
    end if;
    insert into graphile_worker._hathi_limit_holds as old (limit_id, key, until, reason)
    values (bound_id, whose, now() + job.delay * interval '1 millisecond', left(job.reason, 500))
    on conflict (limit_id, key) do update set until = greatest(old.until, excluded.until), reason = excluded.reason;
  end loop;
  perform pg_notify('hathi:limits', 'changed');
end;
$hathi$;

-- Wakes the workers if jobs wait that share a limit with these tasks.
create or replace function graphile_worker._hathi_announce_places(task_ids integer[], clock timestamptz)
returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
as $hathi$
begin
  perform pg_notify('hathi:limits', '')
  from (
    select
    from graphile_worker._private_tasks as freed
    join graphile_worker._hathi_limited_tasks as its on its.task = freed.identifier
    join graphile_worker._hathi_limited_tasks as other on other.limit_ids && its.limit_ids
    join graphile_worker._private_tasks as task on task.identifier = other.task
    cross join lateral (
      select from graphile_worker._private_jobs as job
      where job.task_id = task.id
        and job.locked_at is null
        and job.attempts < job.max_attempts
        and job.run_at <= coalesce(clock, now())
      limit 1
    ) as waiting
    where freed.id = any (task_ids)
    limit 1
  ) as found;
end;
$hathi$;

-- Of these tasks, those that have a rate.
create or replace function graphile_worker._hathi_rated_tasks(task_ids integer[])
returns integer[] language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select coalesce(array_agg(task.id), '{}')
  from graphile_worker._hathi_limited_tasks as member
  join graphile_worker._private_tasks as task on task.identifier = member.task
  where task.id = any (task_ids)
    and exists (select from graphile_worker._hathi_limits as bound where bound.id = any (member.limit_ids) and bound.kind = 'rate');
$hathi$;

-- Frees jobs of rate-limited tasks that the recovery has parked and whose time has come: an adopted job would start without a token. One of a
-- task at a time, and the next one when that has ended or outlasted its probation; so if a worker dies, it is known which of them was running.
create or replace function graphile_worker._hathi_free_rated_suspects(task_ids integer[])
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
declare
  late record;
  freed integer[] := '{}';
begin
  for late in
    select job.id, job.task_id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
      and crash.release_at <= now()
      and job.task_id = any (graphile_worker._hathi_rated_tasks(task_ids))
      and not exists (
        select from graphile_worker._hathi_job_crashes as other
        join graphile_worker._private_jobs as its on its.id = other.job_id
        where its.task_id = job.task_id
          and (
            its.locked_at is null and its.attempts = other.attempt - 1 and its.attempts < its.max_attempts and its.run_at <= now()
            or its.locked_by <> 'hathi-recovery' and its.attempts = other.attempt
              and its.locked_at > now() - graphile_worker._hathi_probation(other.deaths)
          )
      )
    order by crash.crashes desc, job.priority, job.run_at, job.id
    for update of job skip locked
  loop
    continue when late.task_id = any (freed);
    if late.job_queue_id is not null then
      perform 1 from graphile_worker._private_job_queues as queue where queue.id = late.job_queue_id for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = null, locked_at = null
      where queue.id = late.job_queue_id and queue.locked_by = 'hathi-recovery';
    end if;
    update graphile_worker._private_jobs as job set locked_by = null, locked_at = null where job.id = late.id;
    freed := freed || late.task_id;
  end loop;
  return cardinality(freed);
end;
$hathi$;

-- For the metrics: how many jobs wait for and hold the limits of each name, by the figures of their tasks. Locked jobs are counted, up to `cap` of
-- a task, where there is an index of them; elsewhere the figure is what was given.
create or replace function graphile_worker._hathi_collect_limits(tasks jsonb, cap integer)
returns jsonb language plpgsql volatile set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set enable_indexscan = on set enable_indexonlyscan = on set enable_tidscan = on set enable_nestloop = on
as $hathi$
declare
  task record;
  counted jsonb := '{}';
  running bigint;
begin
  if not exists (select from graphile_worker._hathi_limited_tasks) then
    return '[]';
  end if;
  for task in
    select figures.value, member.task as name, known.id, indexed.path
    from jsonb_array_elements(tasks) as figures
    join graphile_worker._hathi_limited_tasks as member on member.task = figures.value ->> 'task'
    join graphile_worker._private_tasks as known on known.identifier = member.task
    left join lateral (
      select bound.path
      from graphile_worker._hathi_limits as bound
      where bound.id = any (member.limit_ids) and bound.kind = 'concurrency'
        and graphile_worker._hathi_has_limit_index('r', known.id, bound.path)
      order by cardinality(bound.path)
      limit 1
    ) as indexed on true
  loop
    if task.path is null then
      running := (task.value ->> 'running')::bigint;
    else
      execute format(
        'select count(*) from (
          select from graphile_worker._private_jobs as job where %s = %s and job.locked_at is not null limit %s
        ) as locked',
        case when task.path = '{}' then 'job.task_id' else 'job.task_id + 0' end, task.id, cap
      ) into running;
    end if;
    counted := counted || jsonb_build_object(task.name, jsonb_build_array(task.value -> 'waiting', running));
  end loop;
  return coalesce((
    select jsonb_agg(jsonb_build_object('scope', named.scope, 'limit', named.name, 'waiting', named.waiting, 'running', named.running)
      order by named.scope, named.name)
    from (
      select held.scope, held.name, sum((held.figures ->> 0)::bigint) as waiting, sum((held.figures ->> 1)::bigint) as running
      from (
        select distinct bound.scope, bound.name, member.task, counted -> member.task as figures
        from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
        where counted ? member.task
      ) as held
      group by held.scope, held.name
    ) as named
  ), '[]');
end;
$hathi$;

-- Deletes what says nothing any more. Called now and then.
create or replace function graphile_worker._hathi_tidy_limits()
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  delete from graphile_worker._hathi_limit_holds as held where held.until < now();
  delete from graphile_worker._hathi_limit_rates as rate
  using graphile_worker._hathi_limits as bound
  where bound.id = rate.limit_id
    and rate.tat < clock_timestamp() - 2 * coalesce(bound.period_ms, 0) * interval '1 millisecond' - interval '1 minute';
  -- Tasks that were only held.
  with over as (
    delete from graphile_worker._hathi_limits as bound
    where bound.kind = 'fair' and bound.path = '{}' and bound.origin = 'set'
      and not exists (select from graphile_worker._hathi_limit_holds as held where held.limit_id = bound.id)
    returning bound.id
  )
  update graphile_worker._hathi_limited_tasks as member
  set limit_ids = array(select id from unnest(member.limit_ids) as id where id not in (select over.id from over))
  where member.limit_ids && array(select over.id from over);
  delete from graphile_worker._hathi_limited_tasks as member where member.limit_ids = '{}';
end;
$hathi$;
