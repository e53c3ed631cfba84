-- How far jobs are, and notifications for those who watch jobs.
--
-- What always holds:
--   1. A worker writes progress only of jobs that it has locked, so that an attempt which was taken from it says nothing any more.
--   2. Progress outlasts an attempt, but not its job: it is only read together with a row of `_private_jobs`. What is left of jobs that are gone
--      is deleted by their worker, or now and then by `_hathi_tidy_progress`.
--   3. A watcher sees a job and its history in one snapshot. Both are written by one statement, so a job is never in neither of them.

-- Half of each page is left free, because every row is updated again and again.
create table graphile_worker._hathi_job_progress (
  job_id bigint primary key,
  done double precision not null,
  -- Null if the task does not know.
  total double precision,
  note text,
  attempt integer not null,
  reported_at timestamptz not null
) with (fillfactor = 50);
alter table graphile_worker._hathi_job_progress enable row level security;

-- How far jobs of this pool are, and which of its jobs have ended.
create or replace function graphile_worker._hathi_write_progress(
  pool_id text, job_ids bigint[], dones double precision[], totals double precision[], notes text[], ended_ids bigint[]
) returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
begin
  insert into graphile_worker._hathi_job_progress as progress (job_id, done, total, note, attempt, reported_at)
  select job.id, report.done, report.total, report.note, job.attempts, clock_timestamp()
  from unnest(job_ids, dones, totals, notes) as report (job_id, done, total, note)
  join graphile_worker._private_jobs as job on job.id = report.job_id
  where job.locked_by = pool_id
  order by job.id
  on conflict (job_id) do update
  set done = excluded.done, total = excluded.total, note = excluded.note, attempt = excluded.attempt, reported_at = excluded.reported_at;
  delete from graphile_worker._hathi_job_progress as progress
  where progress.job_id = any (ended_ids)
    and not exists (select from graphile_worker._private_jobs as job where job.id = progress.job_id);
end;
$hathi$;

-- Where these jobs are now: `present`, `dead`, `succeeded`, `failed` (dead and then removed) or `cancelled`. Unknown jobs are left out.
-- A result that would make the response too large is left for the next call (`is_later`).
create or replace function graphile_worker._hathi_watch_jobs(ids bigint[])
returns table (
  job_id bigint, state text, task_identifier text, attempts integer, error text, error_class text, result json, is_later boolean,
  done double precision, total double precision, note text, reported_at timestamptz
) language plpgsql stable
  set search_path = pg_catalog, pg_temp
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
#variable_conflict use_column
declare
  gone bigint[];
begin
  return query
  select job.id, case when job.locked_at is null and job.attempts >= job.max_attempts then 'dead' else 'present' end,
    (select task.identifier from graphile_worker._private_tasks as task where task.id = job.task_id),
    job.attempts::integer, job.last_error, null::text, null::json, false,
    progress.done, progress.total, progress.note, progress.reported_at
  from graphile_worker._private_jobs as job
  left join graphile_worker._hathi_job_progress as progress on progress.job_id = job.id
  where job.id = any (ids);

  gone := array(
    select wanted.id
    from unnest(ids) as wanted (id)
    where not exists (select from graphile_worker._private_jobs as job where job.id = wanted.id)
  );
  if cardinality(gone) = 0 then
    return;
  end if;
  return query
  with ends as (
    select wanted.id, 'succeeded' as outcome, batch.task_identifier, coalesce(batch.attempts[place.index], 1)::integer as attempt,
      null::text as error, null::text as error_class, null::json as result, batch.settled_at
    from unnest(gone) as wanted (id)
    join graphile_worker._hathi_history_batches as batch
      on batch.first_id >> 12 = wanted.id >> 12 and batch.first_id <= wanted.id and batch.last_id >= wanted.id
    cross join array_position(batch.job_ids, wanted.id) as place (index)
    where place.index is not null
    union all
    select entry.job_id, entry.outcome, entry.task_identifier, entry.attempt, entry.error, entry.error_class, entry.result, entry.settled_at
    from graphile_worker._hathi_history_attempts as entry
    where entry.job_id = any (gone) and entry.outcome in ('succeeded', 'cancelled', 'permanentlyFailed')
    union all
    select entry.job_id, 'cancelled', entry.task_identifier, 0, entry.reason, null, null, coalesce(entry.settled_at, entry.cancelled_at)
    from graphile_worker._hathi_job_cancellations as entry
    where entry.job_id = any (gone) and entry.outcome = 'cancelled'
  ), last_ends as (
    select distinct on (id) *
    from ends
    order by id, outcome = 'succeeded' desc, outcome = 'cancelled' desc, settled_at desc
  ), measured as (
    select last_ends.*, sum(coalesce(pg_column_size(result), 0)) over (order by id) > 8388608
      and row_number() over (order by id) > 1 and result is not null as is_later
    from last_ends
  )
  select id, case outcome when 'permanentlyFailed' then 'failed' else outcome end, task_identifier, attempt, error, error_class,
    case when not is_later then result end, is_later,
    null::double precision, null::double precision, null::text, null::timestamptz
  from measured;
end;
$hathi$;

-- Forgets the progress of jobs that are gone. Called now and then.
create or replace function graphile_worker._hathi_tidy_progress()
returns void language sql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
  delete from graphile_worker._hathi_job_progress as progress
  where not exists (select from graphile_worker._private_jobs as job where job.id = progress.job_id);
$hathi$;
