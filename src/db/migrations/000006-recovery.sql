-- Who is alive, and what becomes of the jobs of those who are not. The table `_private_workers` and the functions whose names
-- do not start with `_hathi` are the Rust port's, so that its workers and ours see each other; a schema that it made is brought
-- to the same state. They are dropped first because the names of arguments cannot be changed in place.

create table if not exists graphile_worker._private_workers (
  id text primary key,
  last_heartbeat_at timestamptz not null,
  started_at timestamptz not null default now(),
  metadata jsonb
);
create index if not exists _private_workers_last_heartbeat_at_idx
  on graphile_worker._private_workers (last_heartbeat_at);
alter table graphile_worker._private_workers enable row level security;

-- Workers that gave signs of life and do so no more. What they still hold belongs to nobody; of any other owner of a lock we
-- know nothing, so it keeps its four hours.
create table graphile_worker._hathi_former_workers (
  id text primary key,
  left_at timestamptz not null default now()
);
alter table graphile_worker._hathi_former_workers enable row level security;

create or replace function graphile_worker._hathi_remember_worker()
returns trigger language plpgsql as $hathi$
begin
  insert into graphile_worker._hathi_former_workers (id) values (old.id)
  on conflict (id) do update set left_at = now();
  return null;
end;
$hathi$;

create trigger _hathi_remember_worker
  after delete on graphile_worker._private_workers
  for each row execute function graphile_worker._hathi_remember_worker();

-- Workers whose beating connection holds a session lock: if the lock is free, the connection is gone.
create table graphile_worker._hathi_worker_lines (
  id text primary key references graphile_worker._private_workers on delete cascade,
  lost_at timestamptz
);
alter table graphile_worker._hathi_worker_lines enable row level security;

-- In how many deaths of its worker, one after the other, a job was running. A death gives the attempt back and a failure does
-- not, so as long as the attempt is the same nothing but deaths came between.
create table graphile_worker._hathi_job_crashes (
  job_id bigint primary key,
  attempt smallint not null,
  crashes integer not null
);
alter table graphile_worker._hathi_job_crashes enable row level security;

-- One row: when somebody last looked for everything, so that a fleet does not do it all at once.
create table graphile_worker._hathi_sweeps (
  id boolean primary key default true check (id),
  swept_at timestamptz not null
);
alter table graphile_worker._hathi_sweeps enable row level security;

-- Breaking migrations of ours that are about to run, or did: workers that do not know them finish what they run and go.
create table graphile_worker._hathi_announced_migrations (
  id integer primary key,
  announced_at timestamptz not null default now()
);
alter table graphile_worker._hathi_announced_migrations enable row level security;

drop function if exists graphile_worker.worker_heartbeat(text, json);
create function graphile_worker.worker_heartbeat(worker_id text, metadata json default null)
returns void language sql volatile as $hathi$
  insert into graphile_worker._private_workers as worker (id, last_heartbeat_at, metadata)
  values (worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb)
  on conflict (id) do update set
    last_heartbeat_at = excluded.last_heartbeat_at,
    metadata = coalesce(excluded.metadata, worker.metadata);
$hathi$;

drop function if exists graphile_worker.worker_deregister(text);
create function graphile_worker.worker_deregister(worker_id text)
returns void language sql volatile as $hathi$
  delete from graphile_worker._private_workers where id = worker_deregister.worker_id;
$hathi$;

drop function if exists graphile_worker.list_stale_workers(interval);
create function graphile_worker.list_stale_workers(sweep_threshold interval)
returns table (worker_id text) language sql stable as $hathi$
  select worker.id from graphile_worker._private_workers as worker where worker.last_heartbeat_at < now() - sweep_threshold;
$hathi$;

drop function if exists graphile_worker.list_orphan_locked_workers(interval);
create function graphile_worker.list_orphan_locked_workers(sweep_threshold interval)
returns table (worker_id text) language sql stable as $hathi$
  select distinct lock.locked_by
  from (
    select job.locked_by, job.locked_at from graphile_worker._private_jobs as job where job.locked_at is not null
    union all
    select queue.locked_by, queue.locked_at from graphile_worker._private_job_queues as queue where queue.locked_at is not null
  ) as lock
  where lock.locked_at < now() - sweep_threshold
    and not exists (select from graphile_worker._private_workers as worker where worker.id = lock.locked_by)
    and (
      lock.locked_at < now() - interval '4 hours'
      or exists (select from graphile_worker._hathi_former_workers as former where former.id = lock.locked_by)
    );
$hathi$;

drop function if exists graphile_worker.delete_stale_workers(text[]);
create function graphile_worker.delete_stale_workers(worker_ids text[])
returns void language sql volatile as $hathi$
  delete from graphile_worker._private_workers where id = any (worker_ids);
$hathi$;

create or replace function graphile_worker._hathi_line_key(worker_id text)
returns bigint language sql immutable as $hathi$
  select hashtextextended('hathi worker ' || worker_id, 0);
$hathi$;

-- Gives how long until the first of the lost lines has been lost for `grace`, in milliseconds; null if none is lost.
create or replace function graphile_worker._hathi_watch_lines(grace interval)
returns double precision language plpgsql volatile as $hathi$
declare
  line record;
  first_lost timestamptz;
begin
  for line in select id, lost_at from graphile_worker._hathi_worker_lines order by id loop
    if pg_try_advisory_xact_lock_shared(graphile_worker._hathi_line_key(line.id)) then
      if line.lost_at is null then
        update graphile_worker._hathi_worker_lines set lost_at = now() where id = line.id and lost_at is null;
      end if;
      first_lost := least(first_lost, coalesce(line.lost_at, now()));
    elsif line.lost_at is not null then
      update graphile_worker._hathi_worker_lines set lost_at = null where id = line.id;
    end if;
  end loop;
  return date_part('epoch', first_lost + grace - now()) * 1000;
end;
$hathi$;

-- Workers that are to be taken for dead, each locked until the transaction ends: one that is alive after all waits at its next
-- beat, and then finds that it was declared dead. To be called by one at a time.
create or replace function graphile_worker._hathi_find_dead_workers(
  threshold interval, resilience double precision, resilient_flags text[], grace interval, with_orphans boolean
) returns table (worker_id text, reason text, last_heartbeat_at timestamptz, metadata jsonb)
language plpgsql volatile as $hathi$
#variable_conflict use_column
declare
  candidate record;
  is_lost boolean;
begin
  -- One whose row is locked is giving a sign of life right now.
  for candidate in
    select worker.id, worker.last_heartbeat_at as beat_at, worker.metadata, line.lost_at
    from graphile_worker._private_workers as worker
    left join graphile_worker._hathi_worker_lines as line on line.id = worker.id
    where worker.last_heartbeat_at < now() - threshold or line.lost_at <= now() - grace
    order by worker.id
    for update of worker skip locked
  loop
    is_lost := candidate.lost_at <= now() - grace
      and pg_try_advisory_xact_lock_shared(graphile_worker._hathi_line_key(candidate.id));
    continue when not coalesce(is_lost, false) and candidate.beat_at >= now() - threshold;
    perform 1
    from graphile_worker._private_jobs as job
    cross join unnest(resilient_flags) as flag
    where job.locked_by = candidate.id
      and job.flags ? flag
      and job.flags -> flag not in ('false'::jsonb, 'null'::jsonb, '0'::jsonb, '""'::jsonb)
    limit 1;
    if found and candidate.beat_at >= now() - threshold * resilience then
      -- From here on only its beats count; it takes its line up again when it comes back.
      delete from graphile_worker._hathi_worker_lines where id = candidate.id;
      continue;
    end if;
    worker_id := candidate.id;
    reason := case when is_lost then 'lost' else 'silent' end;
    last_heartbeat_at := candidate.beat_at;
    metadata := candidate.metadata;
    return next;
  end loop;

  if with_orphans then
    return query
      select orphan.worker_id, 'orphan', null::timestamptz, null::jsonb
      from graphile_worker.list_orphan_locked_workers(threshold) as orphan;
  end if;
end;
$hathi$;

-- Gives the jobs of dead workers back, but for those in `kept`, and frees their queues. A job that was running in
-- `max_crashes` deaths in a row is failed for good instead.
create or replace function graphile_worker._hathi_recover_jobs(
  worker_ids text[], delay interval, max_crashes integer, kept bigint[]
) returns table (job_id bigint, worker_id text, is_suspect boolean)
language plpgsql volatile as $hathi$
#variable_conflict use_column
declare
  held bigint[];
  owners text[];
  suspects bigint[];
begin
  -- The rows are locked first, so that a retirement that is under way is waited for and then seen.
  select array_agg(job.id), array_agg(job.locked_by) into held, owners
  from (
    select id, locked_by
    from graphile_worker._private_jobs
    where locked_by = any (worker_ids) and id <> all (kept)
    order by id
    for update
  ) as job;

  if held is not null then
    -- Of what a worker held, it can have started as many as it has slots, in the order of its claims and one of each queue.
    -- The rest waited in its buffer and is above suspicion.
    insert into graphile_worker._hathi_job_crashes as crash (job_id, attempt, crashes)
    select started.id, started.attempts, 1
    from (
      select head.id, head.attempts, head.locked_by,
        row_number() over (
          partition by head.locked_by order by head.locked_at, head.priority, head.run_at, head.id
        ) as nth
      from (
        select job.*,
          row_number() over (
            partition by job.locked_by, coalesce(job.job_queue_id, -job.id)
            order by job.locked_at, job.priority, job.run_at, job.id
          ) as nth_of_queue
        from graphile_worker._private_jobs as job
        where job.id = any (held)
      ) as head
      where head.nth_of_queue = 1
    ) as started
    join graphile_worker._private_workers as worker on worker.id = started.locked_by
    where started.nth <= case
      when jsonb_typeof(worker.metadata -> 'concurrency') = 'number' then (worker.metadata ->> 'concurrency')::numeric
    end
    on conflict (job_id) do update set
      attempt = excluded.attempt,
      crashes = case when crash.attempt = excluded.attempt then crash.crashes + 1 else 1 end;

    with guilty as (
      delete from graphile_worker._hathi_job_crashes as crash
      where crash.job_id = any (held) and crash.crashes >= max_crashes
      returning crash.job_id
    )
    select array_agg(guilty.job_id) into suspects from guilty;
    delete from graphile_worker._hathi_job_crashes as crash
    where not exists (select from graphile_worker._private_jobs as job where job.id = crash.job_id);

    update graphile_worker._private_jobs as job
    set
      attempts = case
        when exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)
          then job.attempts
        when job.id = any (suspects) then job.max_attempts
        else greatest(0, job.attempts - 1)
      end,
      run_at = greatest(job.run_at, now() + delay),
      last_error = case
        when job.id = any (suspects) then format(
          'The worker died while this job was running, %s times in a row. The job was failed for good, so that it '
            || 'cannot take more workers down; find the cause, then reschedule it.', max_crashes)
        else 'Job recovered after worker interruption'
      end,
      updated_at = now(),
      locked_by = null,
      locked_at = null
    where job.id = any (held);
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(held) || '}');
  end if;

  update graphile_worker._private_job_queues as queue
  set locked_by = null, locked_at = null
  where queue.locked_by = any (worker_ids)
    and not exists (
      select from graphile_worker._private_jobs as job
      where job.id = any (kept) and job.job_queue_id = queue.id and job.locked_by = queue.locked_by
    );

  return query
    select entry.id, entry.owner, coalesce(entry.id = any (suspects), false)
    from unnest(held, owners) as entry (id, owner);
end;
$hathi$;

drop function if exists graphile_worker.recover_dead_worker_jobs(text[], interval);
create function graphile_worker.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default interval '0')
returns integer language sql volatile as $hathi$
  select count(*)::integer from graphile_worker._hathi_recover_jobs(worker_ids, recovery_delay, null, '{}');
$hathi$;
