-- Completing a job inside its task's own transaction, so that the task's rows, the jobs it adds and the completion commit together or not at all.
--
-- What always holds:
--   1. A job's row is deleted at most once, and by the transaction that has the effects. So of all attempts of a job, at most one commits.
--   2. Only the claim that the attempt runs under completes it: the same pool id and the same attempt, or the attempts that a cancel or a
--      replacement has used up. Any other attempt (swept, unlocked, failed, snoozed, claimed again) raises HTL01, which aborts its transaction.
--      Refreshing locks changes neither. A pool that knows that a run is stale gives no pool id, and the transaction is aborted all the same.
--   3. From here to the end of the transaction the job's row is locked: a sweep, a return or a failure leaves it alone (`skip locked`), and a cancel
--      waits for the end and then finds the job done.
--   4. History is written and the named queue is released by the same transaction. The queue is kept if the pool holds another job of it.
--   5. The server ends a transaction that is left open.

-- Sets how long the transaction may take, or may be idle on servers that know no limit for all of it; unless the server's own limit is tighter.
create or replace function graphile_worker._hathi_bound_transaction(time_limit interval)
returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  setting constant text := case
    when current_setting('transaction_timeout', true) is null then 'idle_in_transaction_session_timeout'
    else 'transaction_timeout'
  end;
  theirs constant interval := current_setting(setting)::interval;
begin
  if theirs = interval '0' or theirs > time_limit then
    perform set_config(setting, ceil(date_part('epoch', time_limit) * 1000)::text, true);
  end if;
end;
$hathi$;

-- Completes one job in the transaction of the caller, and gives that transaction's id. `earlier` is what it gave before, for the same attempt: in
-- the same transaction it does nothing more; while another one is open it refuses, since it would wait for what waits for it. What is
-- kept of the job is given as for `_hathi_complete_jobs_kept`; nothing, if `kept_as` is null.
create or replace function graphile_worker._hathi_complete_in(
  job_id bigint, pool_id text, attempt integer, earlier xid8, time_limit interval,
  run_ms integer, result text, kept_as text, kept_days integer, result_days integer, redacted text[]
) returns xid8 language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
declare
  here constant xid8 := pg_current_xact_id();
  job graphile_worker._private_jobs;
  is_ours boolean;
  released integer[];
begin
  if earlier <> here and pg_xact_status(earlier) = 'in progress' then
    raise exception using errcode = 'object_in_use',
      message = format('Job %s was completed in another transaction that is still open: commit it or roll it back first.', job_id);
  end if;

  select claimed.* into job from graphile_worker._private_jobs as claimed where claimed.id = job_id and pool_id is not null for update;
  is_ours := job.locked_by = pool_id
    and (
      job.attempts = attempt
      or job.attempts = job.max_attempts
        and exists (select from graphile_worker._private_job_retirements as retired where retired.id = job_id)
    );
  if is_ours is not true then
    if job.id is null and earlier = here then
      return here;
    end if;
    raise exception using errcode = 'HTL01',
      message = format('Job %s is no longer this attempt''s own (hathi:job-lost): it was given to another worker, or has ended.', job_id);
  end if;

  if kept_as is null then
    perform graphile_worker._hathi_complete_jobs(pool_id, array[job_id], null, '{}');
  else
    for try in 1..20 loop
      begin
        perform graphile_worker._hathi_complete_jobs_kept(
          pool_id, array[job_id], null, '{}', array[attempt], array[run_ms], case when result is not null then array[result] end,
          array[job.task_id], array[kept_as], array[kept_days], array[result_days], redacted
        );
        exit;
      exception when check_violation or lock_not_available then
        -- A worker is making or dropping a partition of the history. The caller's transaction must not fail for that.
        if try = 20 then
          raise;
        end if;
      end;
    end loop;
  end if;
  if job.job_queue_id is not null then
    -- One that is held is released by the pool, after the commit.
    perform graphile_worker._hathi_release_queues(pool_id, array[job.job_queue_id], '{}', true);
  end if;
  perform graphile_worker._hathi_bound_transaction(time_limit);
  return here;
end;
$hathi$;

-- What became of transactions that completed jobs: 'in progress', 'committed' or 'aborted'; and whether the job is still the attempt's. A
-- transaction that the server has never begun was lost in a fail-over. One that it has forgotten is judged by the job alone. The newest transaction
-- that is open lies beyond every snapshot, as does one that was never begun: only the next id tells them apart.
create or replace function graphile_worker._hathi_look_at_completions(
  job_ids bigint[], pool_ids text[], tries integer[], transactions xid8[]
) returns table (status text, is_ours boolean) language plpgsql volatile
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
begin
  return query
  select
    case
      when case when entry.transaction >= pg_snapshot_xmax(pg_current_snapshot()) then entry.transaction > pg_current_xact_id() end then 'aborted'
      else coalesce(pg_xact_status(entry.transaction), 'committed')
    end,
    exists (
      select from graphile_worker._private_jobs as job
      where job.id = entry.job_id and job.locked_by = entry.pool_id
        and (job.attempts = entry.attempt or job.attempts = job.max_attempts)
    )
  from unnest(job_ids, pool_ids, tries, transactions) with ordinality as entry (job_id, pool_id, attempt, transaction, place)
  order by entry.place;
end;
$hathi$;
