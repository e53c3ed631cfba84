-- How our workers write what became of jobs.
--
-- What always holds:
--   1. A settle or a return waits for no other transaction. A row that an application has locked is reported as `held`, and the worker
--      writes it later on its own; everything else is written now.
--   2. Only what is still the pool's own is changed. A job that is not is reported as `lost`.
--   3. Every function that locks several rows locks them in one order: tasks, then queues, by name, to protect them from a clean-up; jobs by
--      id; new keys by key; queues that it takes or releases by id. Functions for applications wait for locks in that order; those for workers use
--      `skip locked`. PostgreSQL waits all the same if the transaction that was updating a row commits between two steps of the
--      lock, and another one has changed the new version by then: it follows the row to that version and waits there, in no
--      order. So every function with `skip locked` has a `lock_timeout` below any sensible `deadlock_timeout`: the worker gives way
--      (55P03, repeated at once), and never an application.
--   4. A queue is released as soon as its job has ended, even if the job's row is held: the next job cannot overlap with it. `ended_ids`
--      are the jobs of these queues that have ended and are still locked, because they are held or are written by another statement; without
--      those whose own statement is yet to release the queue, or it would be released twice, the second time under the next job.

create or replace function graphile_worker._hathi_complete_jobs(
  pool_id text, job_ids bigint[], queue_ids integer[], ended_ids bigint[],
  out lost bigint[], out held bigint[], out held_queues integer[]
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
declare
  done bigint[];
begin
  with gone as (
    delete from graphile_worker._private_jobs as job
    where job.ctid = any (array(
      select mine.ctid
      from graphile_worker._private_jobs as mine
      where mine.id = any (job_ids) and mine.locked_by = pool_id
      order by mine.id
      for update skip locked
    ))
    returning job.id
  )
  select array_agg(gone.id) into done from gone;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, done) as missing;
  -- A release that comes without its job comes late.
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null or job_ids = '{}');
end;
$hathi$;

-- `in_doubt` says that an earlier try may have gone through: then a job that is ours again may be on a later attempt, and that one is
-- not ended. A job that was replaced or removed while it ran has no attempts left, whichever it was on. One with fewer attempts had them
-- reset by hand. `cancelled` are the jobs that were cancelled meanwhile: they are gone instead. Joins are hash joins: nested loops over two arrays
-- would take the square of their length.
create or replace function graphile_worker._hathi_fail_jobs(
  pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[], ended_ids bigint[],
  in_doubt boolean,
  out lost bigint[], out held bigint[], out held_queues integer[], out cancelled bigint[]
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_hashjoin = on
  set enable_nestloop = off
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $hathi$
declare
  mine bigint[];
  done bigint[];
  final bigint[];
begin
  select array_agg(job.id) into mine
  from (
    select id
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  ) as job;
  with failed as (
    update graphile_worker._private_jobs as job
    set
      last_error = outcome.error,
      run_at = greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second',
      locked_by = null,
      locked_at = null,
      payload = coalesce(outcome.payload::json, job.payload)
    from unnest(job_ids, tries, errors, payloads) as outcome (id, attempts, error, payload)
    where job.id = outcome.id
      and job.id = any (mine)
      and (
        job.attempts = outcome.attempts
        or job.attempts < outcome.attempts and not in_doubt
        or job.attempts = job.max_attempts
          and (
            not in_doubt
            or exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)
          )
      )
    returning job.id, job.attempts >= job.max_attempts as is_final
  )
  select array_agg(failed.id), array_agg(failed.id) filter (where failed.is_final) into done, final from failed;
  if final is not null then
    cancelled := graphile_worker._hathi_bury_cancelled(final);
  end if;
  if in_doubt then
    cancelled := cancelled || graphile_worker._hathi_cancelled_before(job_ids);
  end if;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, done) as missing;
  -- What we have locked is not held by others: it is on another attempt.
  if held && mine then
    lost := lost || array(select id from unnest(held) as id where id = any (mine));
    held := nullif(array(select id from unnest(held) as id where id <> all (mine)), '{}');
  end if;
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
end;
$hathi$;

-- Puts jobs back in line with their attempt restored. What was removed or replaced (`_private_job_retirements`) gets none back: if it had
-- started, it stays as permanently failed; if not, it was in fact waiting, and is deleted. `tries` are the attempts that the jobs were claimed
-- for; null for whichever they are on. After a forced unlock the pool may have claimed a job again: then it is on a later attempt, and the
-- return of the earlier claim must not unlock it.
create or replace function graphile_worker._hathi_return_jobs(
  pool_id text, job_ids bigint[], tries integer[], queue_ids integer[], ended_ids bigint[], has_started boolean, delay interval,
  error_message text,
  out lost bigint[], out held bigint[], out held_queues integer[]
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
declare
  mine bigint[];
  on_tries integer[];
  retired bigint[];
  otherwise bigint[];
begin
  select array_agg(job.id), array_agg(job.attempts::integer) into mine, on_tries
  from (
    select id, attempts
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  ) as job;
  -- After the lock, so that a retirement that has just been committed is seen.
  select array_agg(retirement.id) into retired
  from graphile_worker._private_job_retirements as retirement
  where retirement.id = any (mine);
  if tries is not null then
    select array_agg(its.id) into otherwise
    from unnest(mine, on_tries) as its (id, attempt)
    where (its.id = any (retired)) is not true
      and not exists (
        select from unnest(job_ids, tries) as asked (id, attempt) where asked.id = its.id and asked.attempt >= its.attempt
      );
  end if;
  if otherwise is not null then
    mine := array(select id from unnest(mine) as id where id <> all (otherwise));
  end if;

  if retired is not null and not has_started then
    update graphile_worker._hathi_job_cancellations
    set outcome = 'cancelled', settled_at = now()
    where job_id = any (retired) and outcome is null;
    delete from graphile_worker._private_jobs where id = any (retired);
    delete from graphile_worker._private_job_retirements where id = any (retired);
  end if;
  update graphile_worker._private_jobs as job
  set
    attempts = case when job.id = any (retired) then job.attempts else greatest(0, job.attempts - 1) end,
    run_at = case when delay is null then job.run_at else greatest(job.run_at, now() + delay) end,
    last_error = coalesce(error_message, job.last_error),
    locked_by = null,
    locked_at = null
  where job.id = any (mine);
  if retired is not null then
    perform graphile_worker._hathi_bury_cancelled(retired);
  end if;

  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, mine) as missing;
  -- What we have locked is not held by others.
  if otherwise is not null then
    lost := lost || otherwise;
    held := nullif(array(select id from unnest(held) as id where id <> all (otherwise)), '{}');
  end if;
  -- A queue is not released before all its jobs are back in line, or later ones would overtake them.
  if held is not null and queue_ids is not null then
    queue_ids := array(
      select unnest(queue_ids)
      except
      select job.job_queue_id from graphile_worker._private_jobs as job where job.id = any (held)
    );
  end if;
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
  if cardinality(mine) > 0 then
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(mine) || '}');
  end if;
end;
$hathi$;

-- Ends cancelled jobs that no worker runs any more: their rows go, and the record says what became of them. Gives which they are.
create or replace function graphile_worker._hathi_bury_cancelled(candidates bigint[])
returns bigint[] language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
declare
  cancelled bigint[];
begin
  select array_agg(job.id) into cancelled
  from (
    select free.id
    from graphile_worker._private_jobs as free
    where free.id = any (candidates)
      and free.locked_at is null
      and exists (
        select from graphile_worker._hathi_job_cancellations as entry where entry.job_id = free.id and entry.outcome is null
      )
    order by free.id
    for update skip locked
  ) as job;
  if cancelled is null then
    return null;
  end if;
  delete from graphile_worker._private_jobs where id = any (cancelled);
  delete from graphile_worker._private_job_retirements where id = any (cancelled);
  update graphile_worker._hathi_job_cancellations
  set outcome = 'cancelled', settled_at = now()
  where job_id = any (cancelled);
  return cancelled;
end;
$hathi$;

-- Of jobs whose end may have been written by an earlier try: which are cancelled.
create or replace function graphile_worker._hathi_cancelled_before(job_ids bigint[])
returns bigint[] language sql stable
  set search_path = pg_catalog, pg_temp
as $hathi$
  select array_agg(entry.job_id)
  from graphile_worker._hathi_job_cancellations as entry
  where entry.job_id = any (job_ids) and entry.outcome = 'cancelled';
$hathi$;

-- Releases queues, except those whose row another transaction holds at this moment; those are returned. A job that is missing may have
-- been settled by an earlier try whose response was lost. Its queue was released then, and may be ours again because of its next job;
-- so if there is doubt, a queue is kept if one of its jobs is ours. Those that have ended and are still to be written do not count.
create or replace function graphile_worker._hathi_release_queues(
  pool_id text, queue_ids integer[], ended_ids bigint[], in_doubt boolean
) returns integer[] language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
declare
  mine integer[];
  kept integer[] := '{}';
begin
  if queue_ids is null then
    return null;
  end if;
  select coalesce(array_agg(queue.id), '{}') into mine
  from (
    select id
    from graphile_worker._private_job_queues
    where id = any (queue_ids) and locked_by = pool_id
    order by id
    for no key update skip locked
  ) as queue;
  -- After the lock, which a claim of these queues would need, too.
  if in_doubt then
    kept := array(
      select job.job_queue_id
      from graphile_worker._private_jobs as job
      where job.job_queue_id = any (mine) and job.locked_by = pool_id and job.id <> all (ended_ids)
    );
  end if;
  update graphile_worker._private_job_queues
  set locked_by = null, locked_at = null
  where id = any (mine) and id <> all (kept);
  if cardinality(mine) = cardinality(queue_ids) then
    return null;
  end if;
  return nullif(array(
    select id from graphile_worker._private_job_queues where id = any (queue_ids) and locked_by = pool_id and id <> all (mine)
  ), '{}');
end;
$hathi$;

-- Of the jobs that were to be changed and were not: which are no longer the pool's, and which are held by another transaction.
create or replace function graphile_worker._hathi_missing(
  pool_id text, asked bigint[], done bigint[], out lost bigint[], out held bigint[]
) language plpgsql stable
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  if cardinality(asked) = cardinality(done) then
    return;
  end if;
  asked := array(select id from unnest(asked) as id where id <> all (coalesce(done, '{}')));
  select array_agg(job.id) into held from graphile_worker._private_jobs as job where job.id = any (asked) and job.locked_by = pool_id;
  lost := nullif(array(select id from unnest(asked) as id where id <> all (coalesce(held, '{}'))), '{}');
end;
$hathi$;

-- Refreshes the locks of long jobs, so that no worker's four-hour rule releases them.
create or replace function graphile_worker._hathi_refresh_locks(
  pool_id text, job_ids bigint[], queue_ids integer[], clock timestamptz
) returns void language sql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
  with mine as (
    select id
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  )
  update graphile_worker._private_jobs
  set locked_at = coalesce(clock, now())
  where id in (select id from mine);
  with mine as (
    select id
    from graphile_worker._private_job_queues
    where id = any (queue_ids) and locked_by = pool_id
    order by id
    for no key update skip locked
  )
  update graphile_worker._private_job_queues
  set locked_at = coalesce(clock, now())
  where id in (select id from mine);
$hathi$;

-- Unlocks jobs and queues that have been locked for four hours: their worker counts as dead, whoever it was. What a transaction holds
-- at this moment is left for the next time.
create or replace function graphile_worker._hathi_reset_locks(clock timestamptz)
returns void language sql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
  with old as (
    select id
    from graphile_worker._private_jobs
    where locked_at < coalesce(clock, now()) - interval '4 hours'
    order by id
    for update skip locked
  )
  update graphile_worker._private_jobs as job
  set locked_at = null, locked_by = null, run_at = greatest(job.run_at, coalesce(clock, now()))
  from old
  where job.id = old.id;
  delete from graphile_worker._private_job_retirements as retired
  where not exists (select from graphile_worker._private_jobs as job where job.id = retired.id);
  with old as (
    select id
    from graphile_worker._private_job_queues
    where locked_at < coalesce(clock, now()) - interval '4 hours'
    order by id
    for no key update skip locked
  )
  update graphile_worker._private_job_queues as queue
  set locked_at = null, locked_by = null
  from old
  where queue.id = old.id;
$hathi$;
