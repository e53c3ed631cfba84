-- How limits come to be, change at run time, and are held back.

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
