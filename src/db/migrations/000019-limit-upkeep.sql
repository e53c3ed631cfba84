-- What limits need beside claims: news of free places, jobs that the recovery has parked, figures for the metrics, tidying.

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
