-- Entries of the crontab can be paused: while that lasts, their runs count as done and add no job. Graphile Worker's own cron does not obey.

alter table graphile_worker._hathi_pauses drop constraint _hathi_pauses_kind_check;
alter table graphile_worker._hathi_pauses add constraint _hathi_pauses_kind_check check (kind in ('task', 'queue', 'worker', 'cron', 'all'));

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

-- As JSON: the pauses that concern a worker with these names, and in how many milliseconds the first of them ends. Those of crontab entries concern no claim.
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
