-- Staying in control of a job: cancelling, and what its task decides when it throws.
--
-- What always holds:
--   1. A cancelled job never runs again. A waiting one is deleted. A running one is retired in the same statement (its attempts are used up
--      and nothing restores them), so an original worker, a sweep or the four-hour rule cannot bring it back either.
--   2. A cancelled job that ends well counts as done. Otherwise its row goes, and `_hathi_job_cancellations` keeps who, when and why.
--   3. Jobs are locked in the order of their ids. `cancel_jobs` waits for applications; what workers call never waits.

-- How often a task has put a job off. `token` is that of the last time, so that a repeated write is not counted twice.
create table graphile_worker._hathi_job_snoozes (
  job_id bigint primary key,
  snoozes integer not null,
  snoozed_at timestamptz not null default now(),
  token text not null
);
alter table graphile_worker._hathi_job_snoozes enable row level security;

-- Attempts that have used up their time and whose task has not returned yet.
create table graphile_worker._hathi_job_overruns (
  job_id bigint not null,
  worker_id text not null,
  attempt integer not null,
  task_identifier text not null,
  timeout_ms double precision not null,
  started_at timestamptz not null,
  overran_at timestamptz not null default now(),
  primary key (job_id, worker_id, attempt)
);
alter table graphile_worker._hathi_job_overruns enable row level security;

-- Cancels jobs: those that wait are deleted, those that run are asked to stop. Gives their rows as they were; `locked_at` says which run.
-- Jobs that have failed permanently are left alone. Without `cancelled_by` it is the role and the application that connected.
create or replace function graphile_worker.cancel_jobs(job_ids bigint[], reason text default null, cancelled_by text default null)
returns setof graphile_worker._private_jobs language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  waiting bigint[];
  running bigint[];
  who constant text := coalesce(
    cancel_jobs.cancelled_by, session_user || coalesce(' (' || nullif(current_setting('application_name', true), '') || ')', '')
  );
begin
  select
    array_agg(job.id) filter (where job.locked_at is null and job.attempts < job.max_attempts),
    array_agg(job.id) filter (where job.locked_at is not null)
  into waiting, running
  from (
    select id, locked_at, attempts, max_attempts
    from graphile_worker._private_jobs
    where id = any (job_ids)
    order by id
    for update
  ) as job;

  return query select job.* from graphile_worker._private_jobs as job where job.id = any (waiting || running) order by job.id;

  insert into graphile_worker._hathi_job_cancellations
    (job_id, task_identifier, reason, cancelled_by, attempt, outcome, settled_at)
  select job.id, task.identifier, cancel_jobs.reason, who,
    case when job.locked_at is not null then job.attempts end,
    case when job.locked_at is null then 'cancelled' end,
    case when job.locked_at is null then now() end
  from graphile_worker._private_jobs as job
  left join graphile_worker._private_tasks as task on task.id = job.task_id
  where job.id = any (waiting || running)
  order by job.id
  on conflict (job_id) do nothing;

  if waiting is not null then
    delete from graphile_worker._private_jobs where id = any (waiting);
    -- What stood behind one of them in its queue may be next.
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  end if;
  if running is not null then
    insert into graphile_worker._private_job_retirements (id) select unnest(running) on conflict do nothing;
    update graphile_worker._private_jobs as job
    set key = null, attempts = job.max_attempts, updated_at = now()
    where job.id = any (running);
    -- Without ids, if they would not fit into a notification.
    perform pg_notify('hathi:cancel', case when cardinality(running) <= 300 then array_to_json(running)::text else '[]' end);
  end if;
end;
$hathi$;

-- Adds a job under a key and cancels the job of that key that is running. `add_job` alone lets it finish. The job that has the key is
-- locked first, waiting or running, so that no worker can start it between the two steps; and a key that seems free is taken with a mode
-- that replaces nothing, since a job of another transaction may appear under it.
create or replace function graphile_worker._hathi_replace_job(
  identifier text, payload json, queue_name text, run_at timestamptz, max_attempts integer, job_key text, priority integer,
  flags text[], job_key_mode text
) returns graphile_worker._private_jobs language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  earlier record;
  added graphile_worker._private_jobs;
  mode text := 'unsafe_dedupe';
begin
  loop
    select job.id, job.locked_at into earlier
    from graphile_worker._private_jobs as job
    where job.key = _hathi_replace_job.job_key
    for update;
    if found then
      mode := coalesce(_hathi_replace_job.job_key_mode, 'replace');
      if earlier.locked_at is not null then
        perform graphile_worker.cancel_jobs(
          array[earlier.id], 'Replaced by a new job with the key ' || quote_literal(_hathi_replace_job.job_key)
        );
      end if;
    end if;
    added := graphile_worker.add_job(
      identifier => _hathi_replace_job.identifier,
      payload => _hathi_replace_job.payload,
      queue_name => _hathi_replace_job.queue_name,
      run_at => _hathi_replace_job.run_at,
      max_attempts => _hathi_replace_job.max_attempts,
      job_key => _hathi_replace_job.job_key,
      priority => _hathi_replace_job.priority,
      flags => _hathi_replace_job.flags,
      job_key_mode => mode
    );
    -- Otherwise another job has got the key first, and is locked now.
    if earlier.id is not null or added.revision = 0 then
      return added;
    end if;
  end loop;
end;
$hathi$;

-- Writes what was decided about jobs that did not succeed, where that is more than the plain failure of `_hathi_fail_jobs`:
--   retry    failed; tried again after a delay of its own
--   give-up  failed permanently, whatever attempts are left
--   snooze   put off, with its attempt restored; more often than `caps` allows, it counts as failed
--   cancel   gone
-- A job that was cancelled or retired while it ran gets no attempt back. `in_doubt` says that an earlier try may have gone through: then a
-- job that is ours again may be on a later attempt, or come back from a snooze (`tokens`), and that run is not ended. What was written
-- otherwise than it was decided: `refused` are snoozes that count as failures, `cancelled` are jobs that were cancelled meanwhile.
create or replace function graphile_worker._hathi_rule_jobs(
  pool_id text, job_ids bigint[], tries integer[], rulings text[], errors text[], payloads text[], delays double precision[],
  run_ats timestamptz[], caps integer[], tokens text[], queue_ids integer[], ended_ids bigint[],
  in_doubt boolean,
  out lost bigint[], out held bigint[], out held_queues integer[], out refused bigint[], out cancelled bigint[]
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
  attempts_of smallint[];
  max_attempts_of smallint[];
  retired bigint[];
  ours bigint[];
  snoozed bigint[];
  ended bigint[];
begin
  select array_agg(job.id), array_agg(job.attempts), array_agg(job.max_attempts) into mine, attempts_of, max_attempts_of
  from (
    select id, attempts, max_attempts
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  ) as job;
  -- After the lock, so that a retirement that has just been committed is seen.
  select array_agg(retirement.id) into retired
  from graphile_worker._private_job_retirements as retirement
  where retirement.id = any (mine);
  select array_agg(job.id) into ours
  from unnest(mine, attempts_of, max_attempts_of) as job (id, attempts, max_attempts)
  join unnest(job_ids, tries, tokens) as outcome (id, attempt, token) on outcome.id = job.id
  where (
      job.attempts = outcome.attempt
      or job.attempts < outcome.attempt and not in_doubt
      or job.attempts = job.max_attempts and (not in_doubt or job.id = any (retired))
    )
    and not (
      in_doubt
      and exists (
        select from graphile_worker._hathi_job_snoozes as snooze where snooze.job_id = job.id and snooze.token = outcome.token
      )
    );

  if 'cancel' = any (rulings) then
    select array_agg(own.id) into ended
    from unnest(job_ids, rulings) as outcome (id, ruling)
    join unnest(ours) as own (id) on own.id = outcome.id
    where outcome.ruling = 'cancel';
    insert into graphile_worker._hathi_job_cancellations as entry
      (job_id, task_identifier, reason, cancelled_by, outcome, settled_at)
    select job.id, (select task.identifier from graphile_worker._private_tasks as task where task.id = job.task_id),
      outcome.error, pool_id, 'cancelled', now()
    from graphile_worker._private_jobs as job
    join unnest(job_ids, errors) as outcome (id, error) on outcome.id = job.id
    where job.id = any (ended)
    on conflict (job_id) do update set outcome = 'cancelled', settled_at = now();
    delete from graphile_worker._private_jobs where id = any (ended);
    delete from graphile_worker._private_job_retirements where id = any (ended);
  end if;

  if 'snooze' = any (rulings) then
    with counted as (
      insert into graphile_worker._hathi_job_snoozes as snooze (job_id, snoozes, token)
      select own.id, 1, outcome.token
      from unnest(job_ids, rulings, tokens, caps) as outcome (id, ruling, token, cap)
      join unnest(ours) as own (id) on own.id = outcome.id
      where outcome.ruling = 'snooze' and (retired is null or own.id <> all (retired))
        and coalesce((select earlier.snoozes from graphile_worker._hathi_job_snoozes as earlier where earlier.job_id = own.id), 0)
          < coalesce(outcome.cap, 2147483647)
      on conflict (job_id) do update set snoozes = snooze.snoozes + 1, snoozed_at = now(), token = excluded.token
      returning snooze.job_id
    )
    select array_agg(counted.job_id) into snoozed from counted;
    -- With what an earlier try may have refused.
    select array_agg(outcome.id) into refused
    from unnest(job_ids, rulings, tokens, caps) as outcome (id, ruling, token, cap)
    left join unnest(ours) as own (id) on own.id = outcome.id
    left join unnest(snoozed) as put_off (id) on put_off.id = outcome.id
    where outcome.ruling = 'snooze' and put_off.id is null
      and (
        own.id is not null
        or in_doubt and exists (
          select from graphile_worker._hathi_job_snoozes as snooze
          where snooze.job_id = outcome.id and snooze.token <> outcome.token and snooze.snoozes >= outcome.cap
        )
      );
  end if;

  update graphile_worker._private_jobs as job
  set
    attempts = case
      when put_off.id is not null then greatest(0, job.attempts - 1)
      when outcome.ruling = 'give-up' then job.max_attempts
      else job.attempts
    end,
    run_at = case
      when put_off.id is not null then coalesce(outcome.run_at, now() + outcome.delay * interval '1 millisecond')
      when outcome.ruling = 'snooze' then greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second'
      else greatest(now(), job.run_at) + coalesce(outcome.delay, 0) * interval '1 millisecond'
    end,
    last_error = case when put_off.id is not null then job.last_error else outcome.error end,
    payload = coalesce(outcome.payload::json, job.payload),
    updated_at = now(),
    locked_by = null,
    locked_at = null
  from unnest(job_ids, rulings, errors, payloads, delays, run_ats)
    as outcome (id, ruling, error, payload, delay, run_at)
  left join unnest(snoozed) as put_off (id) on put_off.id = outcome.id
  where job.id = outcome.id and job.id = any (ours) and outcome.ruling <> 'cancel';
  if retired is not null then
    cancelled := graphile_worker._hathi_bury_cancelled(retired);
  end if;
  if in_doubt then
    cancelled := cancelled || graphile_worker._hathi_cancelled_before(job_ids);
  end if;

  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, ours) as missing;
  -- What we have locked is not held by others: it is on another attempt.
  if held && mine then
    lost := lost || array(select id from unnest(held) as id where id = any (mine));
    held := nullif(array(select id from unnest(held) as id where id <> all (mine)), '{}');
  end if;
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
end;
$hathi$;

-- What is no longer needed: cancelled jobs that a worker of another kind left behind are deleted, and records of jobs that are gone are
-- closed, and forgotten after a week. Called now and then.
create or replace function graphile_worker._hathi_tidy_control()
returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  perform graphile_worker._hathi_bury_cancelled(
    array(select job_id from graphile_worker._hathi_job_cancellations where outcome is null)
  );
  update graphile_worker._hathi_job_cancellations as entry
  set outcome = 'ended', settled_at = now()
  where entry.outcome is null
    and not exists (select from graphile_worker._private_jobs as job where job.id = entry.job_id);
  delete from graphile_worker._hathi_job_cancellations as entry
  where entry.cancelled_at < now() - interval '7 days' and entry.outcome is not null;
  delete from graphile_worker._hathi_job_snoozes as snooze
  where not exists (select from graphile_worker._private_jobs as job where job.id = snooze.job_id);
  delete from graphile_worker._hathi_job_overruns as overrun where overrun.overran_at < now() - interval '7 days';
end;
$hathi$;
