-- The claim of jobs of limited tasks. 000015-limits.sql states what always holds.

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
