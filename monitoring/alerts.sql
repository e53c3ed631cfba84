-- The alerts of monitoring/alerts.yml as plain SQL: one row for each that fires. Workers must run with metrics; schema: graphile_worker.
-- Not here: HathiClaimsFail and HathiEventLoopBlocked, which only the process itself knows.
select 'HathiJobsWaitTooLong' as alert, task.identifier as subject,
  extract(epoch from now() - oldest.run_at)::float8 as value
from graphile_worker._private_tasks as task
cross join lateral (
  select least(
    (select waiting.oldest from graphile_worker._hathi_count_waiting(task.id, 1) as waiting),
    (
      select min(queued.run_at)
      from (
        select job.task_id, job.run_at from graphile_worker._private_jobs as job
        where job.is_available and job.job_queue_id is not null
        order by job.priority, job.run_at, job.id
        limit 10000
      ) as queued
      where queued.task_id = task.id
    )
  ) as run_at
) as oldest
where oldest.run_at < now() - interval '5 minutes'
union all
select 'HathiFailureRateHigh', task, sum(failed) / sum(succeeded + failed)
from graphile_worker._hathi_job_times
where starts_at > now() - interval '11 minutes'
group by task
having sum(failed) > 0.2 * sum(succeeded + failed)
union all
select 'HathiJobsPermanentlyFailed', task, sum(permanently_failed)
from graphile_worker._hathi_job_times
where starts_at > now() - interval '16 minutes'
group by task
having sum(permanently_failed) > 0
union all
select 'HathiVacuumHeldBack', what || '; to end it: ' || remedy, coalesce(seconds, transactions / 100.0)
from graphile_worker._hathi_vacuum_holders()
where coalesce(seconds, transactions / 100.0) > 900
union all
select 'HathiDeadRows', relname, n_dead_tup
from pg_stat_all_tables
where schemaname = 'graphile_worker' and relname = '_private_jobs' and n_dead_tup > 500000
union all
select 'HathiNoFigures', 'graphile_worker', extract(epoch from now() - refreshed_at)
from graphile_worker._hathi_rollup
where refreshed_at is null or refreshed_at < now() - interval '2 minutes'
order by alert, subject;
