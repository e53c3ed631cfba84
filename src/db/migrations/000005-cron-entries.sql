-- What recurring jobs need beyond Graphile Worker's `_private_known_crontabs`: which job an entry that must not overlap
-- with itself added last.

create table graphile_worker._hathi_cron_jobs (
  identifier text constraint _hathi_cron_jobs_pkey primary key,
  job_id bigint not null
);
alter table graphile_worker._hathi_cron_jobs enable row level security;

-- Adds the job of one run; null if the entry is paused, or if its previous job still waits or runs and it must not overlap. A function,
-- so that it looks with a fresh snapshot: the caller may have waited for another process to schedule an earlier run.
create or replace function graphile_worker._hathi_add_cron_job(
  entry text,
  may_overlap boolean,
  task text,
  payload json,
  queue_name text,
  run_at timestamptz,
  max_attempts integer,
  job_key text,
  priority integer,
  flags text[],
  job_key_mode text
) returns bigint language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  added bigint;
begin
  perform 1 from graphile_worker._hathi_pauses as pause where pause.kind = 'cron' and pause.name = entry and pause.until > now();
  if found then
    return null;
  end if;
  if not may_overlap then
    perform 1
    from graphile_worker._hathi_cron_jobs as previous
    join graphile_worker._private_jobs as job on job.id = previous.job_id
    where previous.identifier = entry
      and (job.locked_at is not null or job.attempts < job.max_attempts);
    if found then
      return null;
    end if;
  end if;

  select job.id into added
  from graphile_worker.add_job(
    task, payload, queue_name, run_at, max_attempts, job_key, priority, flags, coalesce(job_key_mode, 'replace')
  ) as job;

  if not may_overlap and added is not null then
    insert into graphile_worker._hathi_cron_jobs as previous (identifier, job_id)
    values (entry, added)
    on conflict (identifier) do update set job_id = excluded.job_id;
  end if;
  return added;
end;
$hathi$;
