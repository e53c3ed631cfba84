-- Who is alive, and what becomes of the jobs of those who are not. The table `_private_workers` and the functions whose names
-- do not start with `_hathi` are the Rust port's, so that its workers and ours see each other; a schema that it made is brought
-- to the same state.
--
-- What always holds:
--   1. A worker that may be buried claims nothing: its claims hold a key-share lock on its row, which a burial skips, and find no row
--      afterwards. Only the sweep decides about a death, and it has the worker's row locked while it does.
--   2. What a buried worker had claimed is settled under the id that it was claimed with, or belongs to the sweep; never both.
--   3. A sweep takes jobs from a worker only if its last heartbeat is older than the threshold, or if the lock of its current line
--      has been free for the grace period, which is longer while the sweeper's own line is new: what took that may have taken others.
--      The lock of an earlier line, whose session the server may still hold, means nothing.
--   4. A recovered job keeps its priority, run_at and id, and its queue stays locked until it has had its turn, so nothing overtakes it.
--   5. Jobs that were claimed and not started come back at once: no delay, no crash counted.
--   6. A job fails permanently only after deaths in which it was the sole suspect, each soon after it had started.
--   7. A sweep locks workers, then jobs, then queues, each in the order of their ids, and waits for no application: what another
--      transaction holds is recovered later. A job is recovered together with the queue that it holds, never without it.
--   8. A timestamp from the future (the clock was set back) counts as now.
--   9. Time in which the server took no heartbeats is not counted against any worker: a worker judges the silence of others only by the time in which its
--      own heartbeats arrived without a break, so an outage of the server never looks like the death of the workers.

create table if not exists graphile_worker._private_workers (
  id text primary key,
  last_heartbeat_at timestamptz not null,
  started_at timestamptz not null default now(),
  metadata jsonb
);
create index if not exists _private_workers_last_heartbeat_at_idx
  on graphile_worker._private_workers (last_heartbeat_at);
alter table graphile_worker._private_workers enable row level security;

-- Workers that sent heartbeats and do so no more. What they still hold has no owner; of any other owner of a lock we
-- know nothing, so it keeps its four hours. Dead ones did not leave by themselves.
create table graphile_worker._hathi_former_workers (
  id text primary key,
  left_at timestamptz not null default now(),
  is_dead boolean not null default false
);
alter table graphile_worker._hathi_former_workers enable row level security;

create or replace function graphile_worker._hathi_remember_worker()
returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $hathi$
begin
  insert into graphile_worker._hathi_former_workers (id) values (old.id)
  on conflict (id) do update set left_at = now();
  return null;
end;
$hathi$;

create trigger _hathi_remember_worker
  after delete on graphile_worker._private_workers
  for each row execute function graphile_worker._hathi_remember_worker();

-- Workers whose heartbeat connection holds a session lock. Every connection has a key of its own, so no one ever waits for the lock, and if
-- the lock with the current key is free, the connection is gone.
create table graphile_worker._hathi_worker_lines (
  id text primary key references graphile_worker._private_workers on delete cascade,
  key bigint not null,
  lost_at timestamptz
);
alter table graphile_worker._hathi_worker_lines enable row level security;

-- Jobs that were running when a worker died. A death gives the attempt back and a failure does not, so as long as the attempt is the
-- same nothing but deaths came between. `deaths` are those in which the job was running, since `since`; `crashes` those of them, in a
-- row, that count against it. From `release_at` on the job may run again.
create table graphile_worker._hathi_job_crashes (
  job_id bigint primary key,
  attempt smallint not null,
  crashes integer not null,
  deaths integer not null,
  since timestamptz not null,
  release_at timestamptz not null
);
alter table graphile_worker._hathi_job_crashes enable row level security;

-- One row: when a worker last searched for everything, so that a fleet does not do it all at once.
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

-- A call that is under way fails when its function is dropped, so those of the Rust port are replaced in place wherever PostgreSQL
-- allows that: with the same names of arguments, no more defaults, and the same result.
do $hathi$
declare
  found regprocedure;
begin
  for found in
    select pg_catalog.to_regprocedure(wanted.signature)
    from (values
      ($name$graphile_worker.worker_heartbeat(text, json)$name$, 'worker_id text, metadata json', 1, 'void'),
      ($name$graphile_worker.worker_deregister(text)$name$, 'worker_id text', 0, 'void'),
      ($name$graphile_worker.list_stale_workers(interval)$name$, 'sweep_threshold interval', 0, 'TABLE(worker_id text)'),
      ($name$graphile_worker.list_orphan_locked_workers(interval)$name$, 'sweep_threshold interval', 0, 'TABLE(worker_id text)'),
      ($name$graphile_worker.delete_stale_workers(text[])$name$, 'worker_ids text[]', 0, 'void'),
      ($name$graphile_worker.recover_dead_worker_jobs(text[], interval)$name$,
        'worker_ids text[], recovery_delay interval', 1, 'integer')
    ) as wanted (signature, arguments, defaults, result)
    join pg_catalog.pg_proc as function on function.oid = pg_catalog.to_regprocedure(wanted.signature)
    where pg_catalog.pg_get_function_identity_arguments(function.oid) <> wanted.arguments
      or function.pronargdefaults > wanted.defaults
      or pg_catalog.pg_get_function_result(function.oid) <> wanted.result
  loop
    execute pg_catalog.format('drop function %s', found);
  end loop;
end;
$hathi$;

create or replace function graphile_worker.worker_heartbeat(worker_id text, metadata json default null)
returns void language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  insert into graphile_worker._private_workers as worker (id, last_heartbeat_at, metadata)
  values (worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb)
  on conflict (id) do update set
    last_heartbeat_at = excluded.last_heartbeat_at,
    metadata = coalesce(excluded.metadata, worker.metadata);
$hathi$;

create or replace function graphile_worker.worker_deregister(worker_id text)
returns void language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  delete from graphile_worker._private_workers where id = worker_deregister.worker_id;
$hathi$;

create or replace function graphile_worker.list_stale_workers(sweep_threshold interval)
returns table (worker_id text) language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select worker.id from graphile_worker._private_workers as worker where worker.last_heartbeat_at < now() - sweep_threshold;
$hathi$;

create or replace function graphile_worker.list_orphan_locked_workers(sweep_threshold interval)
returns table (worker_id text) language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select distinct lock.locked_by
  from (
    select job.locked_by, job.locked_at from graphile_worker._private_jobs as job where job.locked_at is not null
    union all
    select queue.locked_by, queue.locked_at from graphile_worker._private_job_queues as queue where queue.locked_at is not null
  ) as lock
  left join graphile_worker._hathi_former_workers as former on former.id = lock.locked_by
  where not exists (select from graphile_worker._private_workers as worker where worker.id = lock.locked_by)
    and (
      former.is_dead
      or lock.locked_at < now() - sweep_threshold and former.id is not null
      or lock.locked_at < now() - interval '4 hours' and lock.locked_at < now() - sweep_threshold
    );
$hathi$;

create or replace function graphile_worker.delete_stale_workers(worker_ids text[])
returns void language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  delete from graphile_worker._private_workers where id = any (worker_ids);
  update graphile_worker._hathi_former_workers set is_dead = true where id = any (worker_ids);
$hathi$;

-- Gives how long until the first of the lost lines has been lost for `grace`, in milliseconds; null if none is lost.
create or replace function graphile_worker._hathi_watch_lines(grace interval)
returns double precision language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  line record;
  first_lost timestamptz;
begin
  for line in select id, key, lost_at from graphile_worker._hathi_worker_lines order by id loop
    if pg_try_advisory_xact_lock_shared(line.key) then
      if line.lost_at is null or line.lost_at > now() then
        line.lost_at := now();
        update graphile_worker._hathi_worker_lines set lost_at = now() where id = line.id and key = line.key;
      end if;
      first_lost := least(first_lost, line.lost_at);
    elsif line.lost_at is not null then
      update graphile_worker._hathi_worker_lines set lost_at = null where id = line.id and key = line.key;
    end if;
  end loop;
  return date_part('epoch', first_lost + grace - now()) * 1000;
end;
$hathi$;

-- Workers that are to be taken for dead, each locked until the transaction ends: one that is alive after all waits at its next
-- heartbeat, and then finds that it was declared dead. To be called by one at a time. No worker counts as silent for longer than the time that the
-- caller `witnessed`; null: all of it counts.
create or replace function graphile_worker._hathi_find_dead_workers(
  threshold interval, resilience double precision, resilient_flags text[], grace interval, with_orphans boolean, witnessed interval
) returns table (worker_id text, reason text, last_heartbeat_at timestamptz, metadata jsonb)
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
#variable_conflict use_column
declare
  candidate record;
  is_lost boolean;
  is_silent boolean;
begin
  if with_orphans then
    update graphile_worker._private_workers as worker
    set last_heartbeat_at = now()
    where worker.id in (
      select ahead.id
      from graphile_worker._private_workers as ahead
      where ahead.last_heartbeat_at > now() + interval '1 second'
      order by ahead.id
      for no key update skip locked
    );
  end if;

  -- A worker whose row is locked is sending a heartbeat or claiming right now.
  for candidate in
    select worker.id, worker.last_heartbeat_at as beat_at, worker.metadata
    from graphile_worker._private_workers as worker
    left join graphile_worker._hathi_worker_lines as line on line.id = worker.id
    where worker.last_heartbeat_at < now() - threshold and coalesce(witnessed >= threshold, true) or line.lost_at <= now() - grace
    order by worker.id
    for update of worker skip locked
  loop
    -- Read again, since it may have been replaced before its worker's row was locked.
    select pg_try_advisory_xact_lock_shared(line.key) into is_lost
    from graphile_worker._hathi_worker_lines as line
    where line.id = candidate.id and line.lost_at <= now() - grace;
    is_lost := coalesce(is_lost, false);
    is_silent := candidate.beat_at < now() - threshold and coalesce(witnessed >= threshold, true);
    continue when not is_lost and not is_silent;
    perform 1
    from graphile_worker._private_jobs as job
    cross join unnest(resilient_flags) as flag
    where job.locked_by = candidate.id
      and job.flags ? flag
      and job.flags -> flag not in ('false'::jsonb, 'null'::jsonb, '0'::jsonb, '""'::jsonb)
    limit 1;
    if found and (candidate.beat_at >= now() - threshold * resilience or witnessed < threshold * resilience) then
      -- From here on only its heartbeats count; it takes its line up again when it comes back.
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

-- For how long after its start a job that was running in so many deaths is watched: until then it is the only such job in its process,
-- and a death of the process counts against it.
create or replace function graphile_worker._hathi_probation(deaths integer)
returns interval language sql immutable set search_path = pg_catalog, pg_temp as $hathi$
  select least(interval '4 seconds' * 2 ^ greatest(0, least(deaths, 10) - 1), interval '1 minute');
$hathi$;

-- True if a worker sent its last heartbeat so lately that it counts as alive, by the default of `sweepThreshold`.
create or replace function graphile_worker._hathi_is_beating(last_heartbeat_at timestamptz)
returns boolean language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select last_heartbeat_at > now() - interval '5 minutes';
$hathi$;

-- Returns the jobs of dead workers, except those in `kept`, and frees their queues. Jobs in `pardoned` are above suspicion.
--
-- Of what a worker held, it can have started as many as it has slots, in the order of its claims and one of each queue; the rest is free at
-- once, as is a job whose queue was released already. Those that it can have started are suspects, and are parked: they and their queues stay
-- locked by 'hathi-recovery' until their time has come and a worker adopts them, one at a time in a process (`_hathi_adopt_suspect`). If the
-- connection of the worker is known to be gone, that is at once, else after the delay; and after the delay if the job was running in an
-- earlier death as well. Where no worker could adopt them, they are freed instead.
--
-- The sole suspect of a death within its probation has one more crash. It takes `max_crashes` of them in a row to fail a job permanently;
-- and as many more as workers have died without it since, up to three times as many, because then something else kills workers, too. A worker
-- that was asked to stop before it died makes no suspects. Neither does one that only forwards jobs; its jobs are free at once, since adopting
-- hundreds of them one at a time would take minutes.
--
-- With `with_backoff` a job that can have been running counts as failed instead. Cancelled jobs are still there, so that the caller can keep what became
-- of them; it ends them with `_hathi_bury_cancelled`.
create or replace function graphile_worker._hathi_recover_jobs(
  worker_ids text[], lost_ids text[], delay interval, max_crashes integer, with_backoff boolean, kept bigint[], pardoned bigint[]
) returns table (job_id bigint, worker_id text, outcome text, attempt integer, wait_ms double precision, run_ms double precision)
language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
#variable_conflict use_column
declare
  held bigint[];
  parked bigint[] := '{}';
  can_park boolean;
  queues_free integer[];
  queues_kept integer[];
begin
  select array_agg(job.id) into held
  from (
    select id
    from graphile_worker._private_jobs
    where locked_by = any (worker_ids) and id <> all (kept)
    order by id
    for update skip locked
  ) as job;
  select array_agg(queue.id) into queues_free
  from (
    select id
    from graphile_worker._private_job_queues
    where locked_by = any (worker_ids)
    order by id
    for no key update skip locked
  ) as queue;
  -- A job and its queue are recovered together: a worker that is alive after all must find both or neither.
  select array_agg(job.id) into held
  from graphile_worker._private_jobs as job
  left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id and queue.locked_by = job.locked_by
  where job.id = any (held) and (queue.id is null or queue.id = any (queues_free));

  if held is not null then
    can_park := max_crashes is not null and not with_backoff and exists (
      select from graphile_worker._private_workers as heir
      where heir.id <> all (worker_ids) and heir.metadata ? 'migration' and graphile_worker._hathi_is_beating(heir.last_heartbeat_at)
    );

    return query
    with line as (
      select job.id, job.attempts, job.locked_by, job.locked_at, job.job_queue_id, greatest(job.run_at, job.created_at) as due_at,
        -- Forwarded jobs need no proof: what a silent forwarder still sends is a copy with the same id.
        job.locked_by = any (lost_ids) or coalesce(worker.metadata ? 'forwards', false) as is_proven,
        exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id) as is_retired,
        cancellation.job_id is not null as is_cancelled,
        cancellation.attempt as cancelled_attempt,
        crash.job_id is not null as is_known,
        coalesce(crash.deaths, 0) as deaths,
        case when jsonb_typeof(worker.metadata -> 'concurrency') = 'number' then (worker.metadata ->> 'concurrency')::numeric end as slots,
        coalesce(max_crashes is not null and worker.metadata ? 'concurrency' and not worker.metadata ?| array['stopping', 'forwards'], false)
          and job.id <> all (pardoned) as may_accuse,
        -- The loss of a line is noticed a little later than it happens.
        greatest(worker.last_heartbeat_at, max(job.locked_at) over (partition by job.locked_by), line.lost_at - interval '3 seconds')
          - job.locked_at as ran_for,
        row_number() over (
          partition by job.locked_by, coalesce(job.job_queue_id, -job.id), queue.locked_by = job.locked_by
          order by job.locked_at, job.priority, job.run_at, job.id
        ) as nth_of_queue,
        -- Its queue was released: its run was over, only its row could not be written because another transaction held it.
        job.job_queue_id is not null and queue.locked_by is distinct from job.locked_by as has_ended,
        row(job.locked_at, job.priority, job.run_at, job.id) as place
      from graphile_worker._private_jobs as job
      left join graphile_worker._private_workers as worker on worker.id = job.locked_by
      left join graphile_worker._hathi_worker_lines as line on line.id = worker.id and job.locked_by = any (lost_ids)
      left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
      left join graphile_worker._hathi_job_crashes as crash on crash.job_id = job.id and crash.attempt = job.attempts
      left join graphile_worker._hathi_job_cancellations as cancellation on cancellation.job_id = job.id and cancellation.outcome is null
      -- Also what is left for a later sweep: it had its place in a slot and in front of its queue.
      where job.locked_by = any (worker_ids)
    ), ranked as (
      select line.*,
        not line.has_ended and line.nth_of_queue = 1 and (
          line.slots is null
          or line.slots >= row_number() over (
            partition by line.locked_by order by line.has_ended or line.nth_of_queue > 1, not line.is_known, line.place
          )
        ) as is_started,
        line.is_known and line.ran_for <= graphile_worker._hathi_probation(line.deaths) as is_on_probation
      from line
    ), accused as (
      select ranked.*,
        ranked.is_started and ranked.may_accuse
          and ranked.ran_for <= case when ranked.is_known then graphile_worker._hathi_probation(ranked.deaths) else interval '1 minute' end
          and 1 = case
            when bool_or(ranked.is_on_probation and ranked.is_started) over by_worker
              then count(*) filter (where ranked.is_on_probation and ranked.is_started) over by_worker
            else count(*) filter (where ranked.is_started) over by_worker
          end
          and (ranked.is_on_probation or not coalesce(bool_or(ranked.is_on_probation and ranked.is_started) over by_worker, false))
          as is_sole -- null if nothing is known of the worker
      from ranked
      window by_worker as (partition by ranked.locked_by)
    ), noted as (
      insert into graphile_worker._hathi_job_crashes as crash (job_id, attempt, crashes, deaths, since, release_at)
      select accused.id, accused.attempts, coalesce(accused.is_sole, false)::integer, 1, now(),
        now() + case when accused.is_proven and not accused.is_known then interval '0' else delay end
      from accused
      where accused.is_started and not accused.is_retired and not with_backoff and max_crashes is not null
        and accused.id = any (held) and accused.id <> all (pardoned)
        and (accused.may_accuse or not accused.is_proven)
      on conflict (job_id) do update set
        attempt = excluded.attempt,
        crashes = case when crash.attempt = excluded.attempt and excluded.crashes = 1 then crash.crashes + 1 else excluded.crashes end,
        deaths = case when crash.attempt = excluded.attempt then crash.deaths + 1 else 1 end,
        since = case when crash.attempt = excluded.attempt then crash.since else excluded.since end,
        release_at = excluded.release_at
      returning crash.job_id, crash.release_at,
        crash.crashes > 0 and crash.crashes >= max_crashes + least(2 * max_crashes, greatest(0, 1 - crash.deaths + (
          select count(*) from graphile_worker._hathi_former_workers as former where former.is_dead and former.left_at >= crash.since
        ))) as is_guilty
    ), judged as (
      select accused.*,
        coalesce(noted.is_guilty, false) as is_guilty,
        can_park and noted.job_id is not null and not noted.is_guilty as is_parked,
        with_backoff and accused.is_started and not accused.is_retired and accused.id <> all (pardoned) as has_failed,
        case when accused.is_started and not accused.is_proven then delay when noted.release_at > now() then delay end as rest
      from accused
      left join noted on noted.job_id = accused.id
      where accused.id = any (held)
    )
    update graphile_worker._private_jobs as job
    set
      attempts = case
        when judged.is_retired or judged.has_failed then job.attempts
        when judged.is_guilty then job.max_attempts
        else greatest(0, job.attempts - 1)
      end,
      run_at = case
        when judged.has_failed then greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second'
        when judged.is_parked or judged.rest is null or judged.rest = interval '0' then job.run_at
        else greatest(job.run_at, now() + judged.rest)
      end,
      last_error = case
        when judged.is_guilty then format(
          'WorkerCrashed: the worker died while this job was running alone under suspicion, %s times in a row. The job has failed permanently, so '
            || 'that it cannot take more workers down; find the cause, then reschedule it.', max_crashes)
        when judged.has_failed or judged.is_cancelled and judged.is_started then 'WorkerCrashed: the worker died while this job was running.'
        when judged.is_started then 'Job recovered after worker interruption'
        else job.last_error
      end,
      updated_at = now(),
      locked_by = case when judged.is_parked then 'hathi-recovery' end,
      locked_at = case when judged.is_parked then now() end
    from judged
    where job.id = judged.id
    returning job.id, judged.locked_by,
      case
        when judged.is_guilty then 'suspect'
        when judged.has_failed then 'failed'
        when judged.is_parked then 'parked'
        when judged.is_cancelled and judged.is_started then 'cancelled'
        else 'recovered'
      end,
      coalesce(judged.cancelled_attempt, judged.attempts)::integer, date_part('epoch', judged.locked_at - judged.due_at) * 1000, date_part('epoch', judged.ran_for) * 1000;

    -- What failed permanently starts from nought if it is rescheduled. What was cancelled or replaced while it was parked is still to be freed.
    delete from graphile_worker._hathi_job_crashes as crash
    where not exists (
      select from graphile_worker._private_jobs as job
      where job.id = crash.job_id and (job.attempts < job.max_attempts or job.locked_by = 'hathi-recovery')
    );
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(held) || '}');
  end if;

  queues_kept := array(
    select job.job_queue_id
    from graphile_worker._private_jobs as job
    where job.locked_by = any (worker_ids) and job.job_queue_id is not null
  );
  update graphile_worker._private_job_queues as queue
  set locked_by = free.heir, locked_at = case when free.heir is not null then now() end
  from (
    select locked.id, (
      select 'hathi-recovery'
      from graphile_worker._hathi_job_crashes as crash
      join graphile_worker._private_jobs as job on job.id = crash.job_id
      where job.job_queue_id = locked.id and job.locked_by = 'hathi-recovery'
      limit 1
    ) as heir
    from unnest(queues_free) as locked (id)
    where locked.id <> all (queues_kept)
  ) as free
  where queue.id = free.id;
end;
$hathi$;

-- Locks the next parked job that may run again for a pool, and its queue. Gives nothing if the pool was declared dead.
create or replace function graphile_worker._hathi_adopt_suspect(
  pool_id text, task_ids integer[], forbidden text[], accepted text[], clock timestamptz
) returns setof graphile_worker._private_jobs language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
declare
  next record;
begin
  perform 1 from graphile_worker._private_workers as worker where worker.id = pool_id for key share skip locked;
  if not found then
    return;
  end if;
  for next in
    select job.id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
      and crash.release_at <= now()
      and job.attempts < job.max_attempts
      and job.task_id = any (task_ids)
      and (forbidden is null or (job.flags ?| forbidden) is not true)
      and (accepted is null or (job.flags ?| accepted) is true)
      and (
        job.job_queue_id is null
        or exists (
          select from graphile_worker._private_job_queues as queue
          where queue.id = job.job_queue_id
            and (queue.locked_by = 'hathi-recovery' or queue.is_available)
            and queue.locked_at is distinct from 'infinity'
        )
      )
    order by crash.crashes desc, job.priority, job.run_at, job.id
    limit 10
    for update of job skip locked
  loop
    if next.job_queue_id is not null then
      perform 1
      from graphile_worker._private_job_queues as queue
      where queue.id = next.job_queue_id
        and (queue.locked_by = 'hathi-recovery' or queue.is_available)
        -- Paused, otherwise.
        and queue.locked_at is distinct from 'infinity'
      for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = pool_id, locked_at = coalesce(clock, now())
      where queue.id = next.job_queue_id;
    end if;
    return query
      update graphile_worker._private_jobs as job
      set attempts = job.attempts + 1, locked_by = pool_id, locked_at = coalesce(clock, now())
      where job.id = next.id
      returning job.*;
    return;
  end loop;
end;
$hathi$;

-- Gives how long until the next parked job may be adopted, in milliseconds; null if none is parked. Those that no worker can adopt, or has
-- adopted within ten minutes, are freed for all workers, as are those that were removed or replaced meanwhile.
create or replace function graphile_worker._hathi_tend_parked()
returns double precision language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  late record;
begin
  if not exists (select from graphile_worker._hathi_job_crashes) then
    return null;
  end if;
  for late in
    select job.id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.locked_by = 'hathi-recovery'
      and (
        crash.release_at < now() - interval '10 minutes'
        or job.attempts >= job.max_attempts
        or crash.release_at <= now() and not exists (
          select from graphile_worker._private_workers as worker
          where worker.metadata -> 'tasks' ? task.identifier and graphile_worker._hathi_is_beating(worker.last_heartbeat_at)
        )
      )
    order by job.id
    for update of job skip locked
  loop
    if late.job_queue_id is not null then
      perform 1 from graphile_worker._private_job_queues as queue where queue.id = late.job_queue_id for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = null, locked_at = null
      where queue.id = late.job_queue_id and queue.locked_by = 'hathi-recovery';
    end if;
    update graphile_worker._private_jobs as job set locked_by = null, locked_at = null where job.id = late.id;
    perform graphile_worker._hathi_bury_cancelled(array[late.id]);
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  end loop;
  return (
    select date_part('epoch', min(crash.release_at) - now()) * 1000
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
  );
end;
$hathi$;

create or replace function graphile_worker.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval default interval '0')
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  recovered constant bigint[] := array(
    select recovered.job_id from graphile_worker._hathi_recover_jobs(worker_ids, '{}', recovery_delay, null, false, '{}', '{}') as recovered
  );
begin
  perform graphile_worker._hathi_bury_cancelled(recovered);
  return cardinality(recovered);
end;
$hathi$;
