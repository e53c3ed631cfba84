-- What is paused: tasks, named queues, single workers, entries of the crontab, or everything.
--
-- What always holds:
--   1. A claim that begins after a pause was committed takes no job of what is paused. What was claimed before and has not started is
--      returned by its worker, which hears of the pause by notification or with its next claim.
--   2. While the pause of a queue is active, `locked_at` of the queue's row is `infinity`. Graphile Worker takes no job of a locked queue,
--      and its four-hour rule never frees such a lock. If a job of the queue is running, the row stays its worker's. Whoever releases
--      the row (a settle of ours or of an original, a sweep, `force_unlock_workers`), a trigger turns the release into
--      the pause's own lock (`locked_by` = 'hathi:paused').
--   3. A row with `locked_at` = `infinity` has a pause, active or ended. An ended pause (`until` has passed, or `-infinity` after a resume) is
--      deleted together with the end of that lock and never before, so no queue stays locked without a pause.
--   4. Pausing and resuming wait for no running job. For a queue's row that an application holds, they wait 200 ms at most; then the
--      next claim of any worker makes up for it.
--   5. Pauses end independently of each other. Each target has one row at most.
--
-- While an entry of the crontab is paused, its runs count as done and add no job (`_hathi_add_cron_job`). Graphile Worker's own cron does not obey.
--
-- A schema without pauses has an empty table here, and a claim asks for no more than whether it is empty.

create table graphile_worker._hathi_pauses (
  kind text not null constraint _hathi_pauses_kind_check check (kind in ('task', 'queue', 'worker', 'cron', 'all')),
  -- Empty for `all`.
  name text not null,
  paused_at timestamptz not null default now(),
  until timestamptz not null default 'infinity',
  reason text,
  paused_by text,
  constraint _hathi_pauses_pkey primary key (kind, name)
);
alter table graphile_worker._hathi_pauses enable row level security;

create or replace function graphile_worker._hathi_keep_pause()
returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $hathi$
begin
  perform 1 from graphile_worker._hathi_pauses as pause
  where pause.kind = 'queue' and pause.name = old.queue_name and pause.until > now();
  if found then
    new.locked_at := 'infinity';
    new.locked_by := coalesce(new.locked_by, 'hathi:paused');
  end if;
  return new;
end;
$hathi$;

-- The condition is checked before any function is called, so releases of other queues cost next to nothing more.
create trigger _hathi_keep_pause
  before update on graphile_worker._private_job_queues
  for each row when (old.locked_at = 'infinity' and new.locked_at is distinct from 'infinity')
  execute function graphile_worker._hathi_keep_pause();

-- Deletes pauses that have ended, unlocks their queues, and locks queues whose row was not to be had when they were paused. Takes every
-- lock with `skip locked`: what another transaction holds is left to the next call.
create or replace function graphile_worker._hathi_align_pauses(instant timestamptz)
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
declare
  freed text[];
  ends integer;
begin
  with ended as materialized (
    select pause.kind, pause.name
    from graphile_worker._hathi_pauses as pause
    where pause.until <= instant
    for update skip locked
  ), ours as materialized (
    select queue.queue_name
    from graphile_worker._private_job_queues as queue
    where queue.queue_name in (select ended.name from ended where ended.kind = 'queue')
    order by queue.id
    for no key update skip locked
  ), gone as (
    delete from graphile_worker._hathi_pauses as pause
    using ended
    where pause.kind = ended.kind
      and pause.name = ended.name
      and (
        pause.kind <> 'queue'
        or pause.name in (select ours.queue_name from ours)
        or not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = pause.name)
      )
    returning pause.kind, pause.name
  )
  select array_agg(gone.name) filter (where gone.kind = 'queue'), count(*) into freed, ends from gone;

  -- A job of the queue that is still running keeps it, and from now on the four-hour rule holds for it again.
  update graphile_worker._private_job_queues as queue
  set
    locked_at = case when queue.locked_by = 'hathi:paused' then null else now() end,
    locked_by = nullif(queue.locked_by, 'hathi:paused')
  where queue.queue_name = any (freed) and queue.locked_at = 'infinity';
  if ends > 0 then
    perform pg_notify('hathi:pauses', '');
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  end if;

  -- The pause's row is locked as well: a lock on a queue whose pause has just been deleted would never end.
  update graphile_worker._private_job_queues as queue
  set locked_at = 'infinity', locked_by = coalesce(queue.locked_by, 'hathi:paused')
  where queue.id = any (array(
    select unlocked.id
    from graphile_worker._hathi_pauses as pause
    join graphile_worker._private_job_queues as unlocked on unlocked.queue_name = pause.name
    where pause.kind = 'queue' and pause.until > instant and unlocked.locked_at is distinct from 'infinity'
    order by unlocked.id
    for share of pause skip locked
    for no key update of unlocked skip locked
  ));
end;
$hathi$;

-- Of these tasks, the ones that may run in a worker with these names.
create or replace function graphile_worker._hathi_unpaused_tasks(worker_names text[], task_ids integer[], clock timestamptz)
returns integer[] language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  instant constant timestamptz := coalesce(clock, now());
begin
  perform 1
  from graphile_worker._hathi_pauses as pause
  left join graphile_worker._private_job_queues as queue on pause.kind = 'queue' and queue.queue_name = pause.name
  where pause.until <= instant or (queue.id is not null and queue.locked_at is distinct from 'infinity');
  if found then
    perform graphile_worker._hathi_align_pauses(instant);
  end if;

  perform 1
  from graphile_worker._hathi_pauses as pause
  where pause.until > instant and (pause.kind = 'all' or (pause.kind = 'worker' and pause.name = any (worker_names)));
  if found then
    return '{}';
  end if;
  return array(
    select id
    from unnest(task_ids) with ordinality as known (id, nth)
    where id not in (
      select task.id
      from graphile_worker._hathi_pauses as pause
      join graphile_worker._private_tasks as task on task.identifier = pause.name
      where pause.kind = 'task' and pause.until > instant
    )
    order by nth
  );
end;
$hathi$;

-- As JSON: the pauses that concern a worker with these names, and in how many milliseconds the first of them ends. Pauses of crontab entries
-- concern no claim.
create or replace function graphile_worker._hathi_report_pauses(worker_names text[], clock timestamptz)
returns text language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  select json_build_object(
    'endsInMs', date_part('epoch', nullif(min(pause.until), 'infinity') - coalesce(clock, now())) * 1000,
    'pauses', coalesce(json_agg(json_build_object(
      'kind', pause.kind, 'name', nullif(pause.name, ''), 'queueId', queue.id, 'pausedAt', pause.paused_at,
      'until', nullif(pause.until, 'infinity'), 'reason', pause.reason, 'pausedBy', pause.paused_by
    ) order by pause.paused_at, pause.kind, pause.name), '[]')
  )::text
  from graphile_worker._hathi_pauses as pause
  left join graphile_worker._private_job_queues as queue on pause.kind = 'queue' and queue.queue_name = pause.name
  where pause.until > coalesce(clock, now()) and (pause.kind not in ('worker', 'cron') or (pause.kind = 'worker' and pause.name = any (worker_names)));
$hathi$;

create or replace function graphile_worker._hathi_check_pause(kind text, name text)
returns text language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  if kind is null or kind not in ('task', 'queue', 'worker', 'cron', 'all') then
    raise exception 'Invalid kind of pause ''%''.', kind using errcode = '22023', hint = 'Use task, queue, worker, cron or all.';
  end if;
  if kind = 'all' then
    if name <> '' then
      raise exception 'A pause of everything has no name, got ''%''.', name using errcode = '22023';
    end if;
    return '';
  end if;
  if coalesce(name, '') = '' then
    raise exception 'The name of the % is missing.', kind using errcode = '22023';
  end if;
  if kind in ('task', 'queue') and length(name) > 128 then
    raise exception 'The name of the % is too long: % characters, at most 128 are allowed.', kind, length(name)
      using errcode = '22023';
  end if;
  return name;
end;
$hathi$;

-- Locks the row of a queue, and makes it if it is missing. False if another transaction kept it for too long.
create or replace function graphile_worker._hathi_take_queue_row(wanted text)
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '200ms' as $hathi$
begin
  insert into graphile_worker._private_job_queues (queue_name)
  select wanted
  where not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = wanted)
  on conflict do nothing;
  perform 1 from graphile_worker._private_job_queues as queue where queue.queue_name = wanted for no key update;
  return true;
exception when lock_not_available then
  return false;
end;
$hathi$;

-- Pauses a task, a named queue, a worker (by the id that its locks carry, or its `workerId`) or, with kind `all`, everything. What is running
-- finishes. Pausing again replaces `until`, `reason` and `paused_by`. Without `until` the pause lasts until it is resumed.
create or replace function graphile_worker.pause_work(
  kind text,
  name text default null,
  until timestamptz default null,
  reason text default null,
  paused_by text default null
) returns graphile_worker._hathi_pauses language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  added graphile_worker._hathi_pauses;
begin
  insert into graphile_worker._hathi_pauses as pause (kind, name, until, reason, paused_by)
  values (
    pause_work.kind, graphile_worker._hathi_check_pause(pause_work.kind, pause_work.name),
    coalesce(pause_work.until, 'infinity'), pause_work.reason, coalesce(pause_work.paused_by, session_user)
  )
  on conflict (kind, name) do update set
    paused_at = case when pause.until > now() then pause.paused_at else excluded.paused_at end,
    until = excluded.until,
    reason = excluded.reason,
    paused_by = excluded.paused_by
  returning * into added;
  if added.kind = 'queue' and added.until > now() and graphile_worker._hathi_take_queue_row(added.name) then
    update graphile_worker._private_job_queues as queue
    set locked_at = 'infinity', locked_by = coalesce(queue.locked_by, 'hathi:paused')
    where queue.queue_name = added.name and queue.locked_at is distinct from 'infinity';
  end if;
  perform pg_notify('hathi:pauses', '');
  return added;
end;
$hathi$;

-- Ends a pause; false if there is none. Other pauses stay, even if they concern the same jobs.
create or replace function graphile_worker.resume_work(kind text, name text default null)
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  wanted constant text := graphile_worker._hathi_check_pause(resume_work.kind, resume_work.name);
  was_active boolean;
begin
  with paused as materialized (
    select pause.until
    from graphile_worker._hathi_pauses as pause
    where pause.kind = resume_work.kind and pause.name = wanted
    for update
  )
  update graphile_worker._hathi_pauses as pause
  set until = '-infinity'
  from paused
  where pause.kind = resume_work.kind and pause.name = wanted
  returning paused.until > now() into was_active;
  if found then
    if resume_work.kind = 'queue' then
      perform graphile_worker._hathi_take_queue_row(wanted);
    end if;
    perform graphile_worker._hathi_align_pauses('-infinity');
    perform pg_notify('hathi:pauses', '');
  end if;
  return coalesce(was_active, false);
end;
$hathi$;

-- What is paused now.
create or replace function graphile_worker.list_pauses()
returns setof graphile_worker._hathi_pauses language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select pause.* from graphile_worker._hathi_pauses as pause where pause.until > now() order by pause.paused_at, pause.kind, pause.name;
$hathi$;
