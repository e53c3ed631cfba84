-- The functions that any SQL client or trigger may call. Signatures are Graphile Worker's to the letter and are never
-- overloaded; the bodies are ours: an add never comes back empty, ids are not burned, and bad values get plain messages.
--
-- Every function fixes its search path: with the caller's, a role that may create objects in `public` could offer a function or
-- operator that fits a call better than PostgreSQL's own, and have it run as the caller. It costs a call 0.2 µs on PostgreSQL 18
-- and 2 µs on 15, measured; names and operators in full would cost the reader more.

-- A job that was replaced, removed or failed by hand while it ran. Its attempts are used up on purpose, so whoever gives
-- the job back must not restore one. No foreign key: it would cost every deleted job an index scan.
create table if not exists graphile_worker._private_job_retirements (
  id bigint primary key
);
alter table graphile_worker._private_job_retirements drop constraint if exists _private_job_retirements_id_fkey;
alter table graphile_worker._private_job_retirements enable row level security;

-- Who cancelled which job, when and why. The row outlives its job for a while, so that `why` can tell. Without an `outcome` the job was
-- running when it was cancelled, and has not ended yet; it is retired as well, so nothing ever lets it run again.
create table graphile_worker._hathi_job_cancellations (
  job_id bigint primary key,
  task_identifier text,
  reason text,
  cancelled_by text,
  cancelled_at timestamptz not null default now(),
  -- The one under way; null if the job was waiting. The row of a cancelled job says that all are used up.
  attempt integer,
  outcome text check (outcome in ('cancelled', 'ended')),
  settled_at timestamptz
);
create index _hathi_job_cancellations_open_idx on graphile_worker._hathi_job_cancellations (job_id) where outcome is null;
create index _hathi_job_cancellations_by_time_idx on graphile_worker._hathi_job_cancellations (cancelled_at);
alter table graphile_worker._hathi_job_cancellations enable row level security;

create or replace function graphile_worker._hathi_check_spec(
  identifier text, queue_name text, job_key text, max_attempts integer, priority integer
) returns void language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  if length(identifier) > 128 then
    raise exception 'Task identifier is too long: % characters, at most 128 are allowed.', length(identifier)
      using errcode = 'GWBID';
  end if;
  if length(queue_name) > 128 then
    raise exception 'Job queue name is too long: % characters, at most 128 are allowed.', length(queue_name)
      using errcode = 'GWBQN';
  end if;
  if length(job_key) > 512 or length(job_key) < 1 then
    raise exception 'Job key must have 1 to 512 characters, got %.', length(job_key)
      using errcode = 'GWBJK';
  end if;
  if max_attempts < 1 then
    raise exception 'Job maximum attempts must be at least 1, got %.', max_attempts
      using errcode = 'GWBMA';
  end if;
  if max_attempts > 32767 then
    raise exception 'Job maximum attempts must be at most 32767, got %.', max_attempts
      using errcode = '22003';
  end if;
  if priority not between -32768 and 32767 then
    raise exception 'Job priority must be between -32768 and 32767, got %.', priority
      using errcode = '22003';
  end if;
end;
$hathi$;

-- Looks before it writes, so that identity values are only used for rows that are really new. A row that an add has chosen is
-- locked (`for key share`), so that a clean-up cannot delete it before the add is committed. Claims and settles are not held up:
-- they do not change what such a lock protects.
create or replace function graphile_worker._hathi_task_id(wanted text)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  found_id integer;
begin
  loop
    select id into found_id from graphile_worker._private_tasks where identifier = wanted for key share;
    if found then
      return found_id;
    end if;
    insert into graphile_worker._private_tasks (identifier) values (wanted) on conflict do nothing returning id into found_id;
    if found then
      return found_id;
    end if;
  end loop;
end;
$hathi$;

create or replace function graphile_worker._hathi_queue_id(wanted text)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  found_id integer;
begin
  if wanted is null then
    return null;
  end if;
  loop
    select id into found_id from graphile_worker._private_job_queues where queue_name = wanted for key share;
    if found then
      return found_id;
    end if;
    insert into graphile_worker._private_job_queues (queue_name) values (wanted) on conflict do nothing returning id into found_id;
    if found then
      return found_id;
    end if;
  end loop;
end;
$hathi$;

-- The same for many: locks the rows that are there, and makes those that are missing. In order of name, so that two calls with the
-- same new names wait for each other instead of dead-locking. A role that may not insert can use names that exist.
create or replace function graphile_worker._hathi_keep_tasks(names text[])
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  kept integer;
begin
  loop
    select count(*) into kept
    from (select from graphile_worker._private_tasks where identifier = any (names) order by identifier for key share) as locked;
    exit when kept = cardinality(names);
    insert into graphile_worker._private_tasks (identifier)
      select name
      from unnest(names) as name
      where not exists (select from graphile_worker._private_tasks as task where task.identifier = name)
      order by name
      on conflict do nothing;
  end loop;
end;
$hathi$;

create or replace function graphile_worker._hathi_keep_queues(names text[])
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  kept integer;
begin
  loop
    select count(*) into kept
    from (select from graphile_worker._private_job_queues where queue_name = any (names) order by queue_name for key share) as locked;
    exit when kept = cardinality(names);
    insert into graphile_worker._private_job_queues (queue_name)
      select name
      from unnest(names) as name
      where not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = name)
      order by name
      on conflict do nothing;
  end loop;
end;
$hathi$;

create or replace function graphile_worker._hathi_flags(flags text[])
returns jsonb language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  if exists (select from unnest(flags) as flag where flag is null) then
    raise exception 'Job flags must not contain null.'
      using errcode = '22023', hint = 'Leave the element out of the array.';
  end if;
  return (select jsonb_object_agg(flag, true) from unnest(flags) as flag);
end;
$hathi$;

-- Arrays gather; anything else is replaced. Its names are bound when it is made, so it needs no path and is inlined: with a
-- path of its own it would take ten times as long.
create or replace function graphile_worker._hathi_merge_payloads(had json, given json)
returns json language sql immutable
return case
  when json_typeof(had) = 'array' and json_typeof(given) = 'array' then (had::jsonb || given::jsonb)::json
  else given
end;

-- Frees a key that is held by a job which can no longer be changed: one that runs, or one that failed permanently. Waits for
-- a claim in progress, so that what it decides on is the truth.
create or replace function graphile_worker._hathi_free_keys(keys text[])
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  held bigint[];
begin
  select array_agg(job.id) filter (where not job.is_available) into held
  from (
    select id, is_available
    from graphile_worker._private_jobs
    where key = any (keys)
    order by id
    for update
  ) as job;
  if held is not null then
    insert into graphile_worker._private_job_retirements (id)
      select id from graphile_worker._private_jobs where id = any (held) and locked_at is not null
      on conflict do nothing;
    update graphile_worker._private_jobs
      set key = null, attempts = max_attempts, updated_at = now()
      where id = any (held);
  end if;
end;
$hathi$;

-- Jobs whose key is among `preserving_keys` keep the `run_at` of the waiting job that they replace.
create or replace function graphile_worker._hathi_add_specs(
  specs graphile_worker.job_spec[], preserving_keys text[]
) returns setof graphile_worker._private_jobs language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  keys text[];
  waiting bigint[];
  known text[];
  held text[];
  twice text;
  bad record;
  plain bigint[];
  written integer;
begin
  -- One look over all specs; the message is made only for the first bad one.
  select spec.* into bad
  from unnest(specs) as spec
  where length(spec.identifier) > 128
    or length(spec.queue_name) > 128
    or length(spec.job_key) > 512
    or length(spec.job_key) < 1
    or spec.max_attempts < 1
  limit 1;
  if found then
    perform graphile_worker._hathi_check_spec(bad.identifier, bad.queue_name, bad.job_key, bad.max_attempts, bad.priority);
  end if;

  perform graphile_worker._hathi_keep_tasks(array(select distinct spec.identifier from unnest(specs) as spec));
  if exists (select from unnest(specs) as spec where spec.queue_name is not null) then
    perform graphile_worker._hathi_keep_queues(
      array(select distinct spec.queue_name from unnest(specs) as spec where spec.queue_name is not null)
    );
  end if;

  perform pg_notify('jobs:insert', json_build_object('r', random(), 'count', cardinality(specs))::text);

  select array_agg(spec.job_key order by spec.job_key) into keys
  from unnest(specs) as spec
  where spec.job_key is not null;

  if keys is null then
    return query
      insert into graphile_worker._private_jobs
        (job_queue_id, task_id, payload, run_at, max_attempts, priority, flags)
      select queue.id, task.id,
        coalesce(spec.payload, '{}'::json), coalesce(spec.run_at, now()), coalesce(spec.max_attempts, 25::smallint),
        coalesce(spec.priority, 0::smallint), case when spec.flags is not null then graphile_worker._hathi_flags(spec.flags) end
      from unnest(specs) with ordinality
        as spec (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, position)
      left join graphile_worker._private_tasks as task on task.identifier = spec.identifier
      left join graphile_worker._private_job_queues as queue on queue.queue_name = spec.queue_name
      order by spec.position
      returning *;
    return;
  end if;

  select key into twice from unnest(keys) as key group by key having count(*) > 1 limit 1;
  if found then
    raise exception 'Job key ''%'' was given more than once in one call.', twice
      using errcode = '21000', hint = 'Add these jobs one after the other, or give each its own key.';
  end if;

  with inserted as (
    insert into graphile_worker._private_jobs
      (job_queue_id, task_id, payload, run_at, max_attempts, priority, flags)
    select queue.id, task.id,
      coalesce(spec.payload, '{}'::json), coalesce(spec.run_at, now()), coalesce(spec.max_attempts, 25::smallint),
      coalesce(spec.priority, 0::smallint), case when spec.flags is not null then graphile_worker._hathi_flags(spec.flags) end
    from unnest(specs) with ordinality
      as spec (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, position)
    left join graphile_worker._private_tasks as task on task.identifier = spec.identifier
    left join graphile_worker._private_job_queues as queue on queue.queue_name = spec.queue_name
    where spec.job_key is null
    order by spec.position
    returning id
  )
  select array_agg(inserted.id) into plain from inserted;

  -- Jobs that are there are locked in the order of their ids, like everywhere; after that new keys are written, in the order of keys, and
  -- no row is waited for any more. Where a job has appeared or changed in between, all these locks are dropped for another turn:
  -- waiting for it now would be out of order. (A bounded number of turns, since a trigger of the user's may keep a row out.)
  for turn in 1 .. 100 loop
    begin
      select array_agg(job.id) filter (where job.is_available), array_agg(job.key) filter (where job.is_available),
        array_agg(job.key) filter (where not job.is_available)
      into waiting, known, held
      from (select id, key, is_available from graphile_worker._private_jobs where key = any (keys) order by id for update) as job;
      if held is not null then
        perform graphile_worker._hathi_free_keys(held);
      end if;

      update graphile_worker._private_jobs as job
      set
        job_queue_id = queue.id,
        task_id = task.id,
        payload = graphile_worker._hathi_merge_payloads(job.payload, coalesce(spec.payload, '{}'::json)),
        max_attempts = coalesce(spec.max_attempts, 25::smallint),
        run_at = case
          when job.key = any (preserving_keys) and job.attempts = 0 then job.run_at
          else coalesce(spec.run_at, now())
        end,
        priority = coalesce(spec.priority, 0::smallint),
        revision = job.revision + 1,
        flags = case when spec.flags is not null then graphile_worker._hathi_flags(spec.flags) end,
        attempts = 0,
        last_error = null,
        updated_at = now()
      from unnest(specs) as spec
      left join graphile_worker._private_tasks as task on task.identifier = spec.identifier
      left join graphile_worker._private_job_queues as queue on queue.queue_name = spec.queue_name
      where job.id = any (waiting) and spec.job_key = job.key;

      insert into graphile_worker._private_jobs
        (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
      select queue.id, task.id,
        coalesce(spec.payload, '{}'::json), coalesce(spec.run_at, now()), coalesce(spec.max_attempts, 25::smallint),
        spec.job_key, coalesce(spec.priority, 0::smallint), case when spec.flags is not null then graphile_worker._hathi_flags(spec.flags) end
      from unnest(specs) as spec
      left join graphile_worker._private_tasks as task on task.identifier = spec.identifier
      left join graphile_worker._private_job_queues as queue on queue.queue_name = spec.queue_name
      where spec.job_key is not null
        and spec.job_key not in (select unnest(known))
      order by spec.job_key
      on conflict (key) do nothing;
      get diagnostics written = row_count;
      exit when coalesce(cardinality(waiting), 0) + written = cardinality(keys);
      raise exception using errcode = 'GWAGN';
    exception when sqlstate 'GWAGN' then
      null;
    end;
  end loop;

  return query
    select job.*
    from (
      select spec.job_key, spec.position,
        count(*) filter (where spec.job_key is null) over (order by spec.position) as nth_plain
      from unnest(specs) with ordinality
        as spec (identifier, payload, queue_name, run_at, max_attempts, job_key, priority, flags, position)
    ) as spec
    left join graphile_worker._private_jobs as keyed on keyed.key = spec.job_key
    join graphile_worker._private_jobs as job on job.id = coalesce(keyed.id, plain[spec.nth_plain])
    order by spec.position;
end;
$hathi$;

create or replace function graphile_worker.add_jobs(
  specs graphile_worker.job_spec[], job_key_preserve_run_at boolean default false
) returns setof graphile_worker._private_jobs language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  return query
    select *
    from graphile_worker._hathi_add_specs(
      specs, case when job_key_preserve_run_at then array(select spec.job_key from unnest(specs) as spec) end
    );
end;
$hathi$;

-- What our library uses for jobs without a key, which it has checked itself. Names come once each, and jobs point to them by
-- position; an array of nothing but nulls comes as null; back goes only what the caller cannot know. Looking up names for each
-- job, and reading and sending whole rows, would take longer than writing them.
create or replace function graphile_worker._hathi_add_jobs(
  task_names text[],
  job_tasks integer[],
  queue_names text[],
  job_queues integer[],
  payloads text[],
  run_ats timestamptz[],
  max_attempts smallint[],
  priorities smallint[],
  flags text[],
  out ids text,
  out task_ids integer[],
  out queue_ids integer[],
  out added_at timestamptz
) language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  added_at := now();
  if cardinality(task_names) > 1 then
    perform graphile_worker._hathi_keep_tasks(task_names);
  end if;
  task_ids := array(
    select graphile_worker._hathi_task_id(name) from unnest(task_names) with ordinality as task (name, nth) order by nth
  );
  if queue_names is not null then
    perform graphile_worker._hathi_keep_queues(queue_names);
    queue_ids := array(
      select queue.id
      from unnest(queue_names) with ordinality as wanted (name, nth)
      left join graphile_worker._private_job_queues as queue on queue.queue_name = wanted.name
      order by wanted.nth
    );
  end if;

  with inserted as (
    insert into graphile_worker._private_jobs
      (job_queue_id, task_id, payload, run_at, max_attempts, priority, flags)
    select queue_ids[spec.queue], task_ids[spec.task], spec.payload::json, coalesce(spec.run_at, added_at),
      coalesce(spec.max_attempts, 25::smallint), coalesce(spec.priority, 0::smallint), spec.flags::jsonb
    from unnest(
      job_tasks, job_queues, payloads, run_ats, _hathi_add_jobs.max_attempts, priorities, _hathi_add_jobs.flags
    ) as spec (task, queue, payload, run_at, max_attempts, priority, flags)
    returning id
  )
  select string_agg(inserted.id::text, ',') into ids from inserted;
  perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(job_tasks) || '}');
end;
$hathi$;

create or replace function graphile_worker.add_job(
  identifier text,
  payload json default null,
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts integer default null,
  job_key text default null,
  priority integer default null,
  flags text[] default null,
  job_key_mode text default 'replace'
) returns graphile_worker._private_jobs language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
#variable_conflict use_column
declare
  added graphile_worker._private_jobs;
  flag_object jsonb;
begin
  if length(add_job.identifier) > 128
    or length(add_job.queue_name) > 128
    or length(add_job.job_key) > 512
    or length(add_job.job_key) < 1
    or add_job.max_attempts not between 1 and 32767
    or add_job.priority not between -32768 and 32767
  then
    perform graphile_worker._hathi_check_spec(
      add_job.identifier, add_job.queue_name, add_job.job_key, add_job.max_attempts, add_job.priority
    );
  end if;

  if add_job.job_key is not null and add_job.job_key_mode not in ('replace', 'preserve_run_at', 'unsafe_dedupe') then
    raise exception 'Invalid job_key_mode ''%''.', add_job.job_key_mode
      using errcode = 'GWBKM', hint = 'Use replace, preserve_run_at or unsafe_dedupe.';
  end if;

  if add_job.flags is not null then
    flag_object := graphile_worker._hathi_flags(add_job.flags);
  end if;

  if add_job.job_key is null then
    insert into graphile_worker._private_jobs
      (job_queue_id, task_id, payload, run_at, max_attempts, priority, flags)
    values (
      case when add_job.queue_name is not null then graphile_worker._hathi_queue_id(add_job.queue_name) end,
      coalesce(
        (select task.id from graphile_worker._private_tasks as task where task.identifier = add_job.identifier for key share),
        graphile_worker._hathi_task_id(add_job.identifier)
      ),
      coalesce(add_job.payload, '{}'::json),
      coalesce(add_job.run_at, now()),
      coalesce(add_job.max_attempts::smallint, 25::smallint),
      coalesce(add_job.priority::smallint, 0::smallint),
      flag_object
    )
    returning * into added;
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
    return added;
  end if;

  if add_job.job_key_mode = 'unsafe_dedupe' then
    insert into graphile_worker._private_jobs as job
      (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
    values (
      graphile_worker._hathi_queue_id(add_job.queue_name),
      graphile_worker._hathi_task_id(add_job.identifier),
      coalesce(add_job.payload, '{}'::json),
      coalesce(add_job.run_at, now()),
      coalesce(add_job.max_attempts::smallint, 25::smallint),
      add_job.job_key,
      coalesce(add_job.priority::smallint, 0::smallint),
      flag_object
    )
    on conflict (key) do update set revision = job.revision + 1, updated_at = now()
    returning * into added;
    if added.revision = 0 then
      perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
    end if;
    return added;
  end if;

  loop
    insert into graphile_worker._private_jobs as job
      (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
    values (
      graphile_worker._hathi_queue_id(add_job.queue_name),
      graphile_worker._hathi_task_id(add_job.identifier),
      coalesce(add_job.payload, '{}'::json),
      coalesce(add_job.run_at, now()),
      coalesce(add_job.max_attempts::smallint, 25::smallint),
      add_job.job_key,
      coalesce(add_job.priority::smallint, 0::smallint),
      flag_object
    )
    on conflict (key) do update set
      job_queue_id = excluded.job_queue_id,
      task_id = excluded.task_id,
      payload = graphile_worker._hathi_merge_payloads(job.payload, excluded.payload),
      max_attempts = excluded.max_attempts,
      run_at = case
        when add_job.job_key_mode = 'preserve_run_at' and job.attempts = 0 then job.run_at
        else excluded.run_at
      end,
      priority = excluded.priority,
      revision = job.revision + 1,
      flags = excluded.flags,
      attempts = 0,
      last_error = null,
      updated_at = now()
    where job.is_available
    returning * into added;
    exit when found;
    perform graphile_worker._hathi_free_keys(array[add_job.job_key]);
  end loop;
  perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  return added;
end;
$hathi$;

create or replace function graphile_worker.remove_job(job_key text)
returns graphile_worker._private_jobs language plpgsql volatile strict set search_path = pg_catalog, pg_temp as $hathi$
declare
  removed graphile_worker._private_jobs;
begin
  select * into removed
  from graphile_worker._private_jobs as job
  where job.key = remove_job.job_key
  for update;
  if not found then
    return null;
  end if;

  if removed.locked_at is null or removed.locked_at < now() - interval '4 hours' then
    delete from graphile_worker._private_jobs as job where job.id = removed.id;
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":-1}');
    return removed;
  end if;

  -- It runs: let it finish, but never again.
  insert into graphile_worker._private_job_retirements (id) values (removed.id) on conflict do nothing;
  update graphile_worker._private_jobs as job
    set key = null, attempts = job.max_attempts, updated_at = now()
    where job.id = removed.id
    returning * into removed;
  return removed;
end;
$hathi$;

-- These wait for other transactions, so they lock in the order of ids, and check again what may have changed meanwhile.

create or replace function graphile_worker.complete_jobs(job_ids bigint[])
returns setof graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  with locked as materialized (
    select id from graphile_worker._private_jobs where id = any (job_ids) order by id for update
  )
  delete from graphile_worker._private_jobs as job
  using locked
  where job.id = locked.id
    and (job.locked_at is null or job.locked_at < now() - interval '4 hours')
  returning job.*;
$hathi$;

create or replace function graphile_worker.permanently_fail_jobs(job_ids bigint[], error_message text default null)
returns setof graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  with locked as materialized (
    select id from graphile_worker._private_jobs where id = any (job_ids) order by id for update
  ), failed as (
    update graphile_worker._private_jobs as job
    set
      last_error = coalesce(error_message, 'Manually marked as failed'),
      attempts = job.max_attempts,
      updated_at = now()
    from locked
    where job.id = locked.id
      and (job.locked_at is null or job.locked_at < now() - interval '4 hours')
    returning job.*
  ), retired as (
    insert into graphile_worker._private_job_retirements (id)
    select id from failed where locked_at is not null
    on conflict do nothing
  )
  select * from failed;
$hathi$;

create or replace function graphile_worker.reschedule_jobs(
  job_ids bigint[],
  run_at timestamptz default null,
  priority integer default null,
  attempts integer default null,
  max_attempts integer default null
) returns setof graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  select graphile_worker._hathi_check_spec(null, null, null, reschedule_jobs.max_attempts, reschedule_jobs.priority);
  with locked as materialized (
    select id from graphile_worker._private_jobs where id = any (job_ids) order by id for update
  ), rescheduled as (
    update graphile_worker._private_jobs as job
    set
      run_at = coalesce(reschedule_jobs.run_at, job.run_at),
      priority = coalesce(reschedule_jobs.priority::smallint, job.priority),
      attempts = coalesce(reschedule_jobs.attempts::smallint, job.attempts),
      max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, job.max_attempts),
      updated_at = now()
    from locked
    where job.id = locked.id
      and (job.locked_at is null or job.locked_at < now() - interval '4 hours')
      and not exists (select from graphile_worker._hathi_job_cancellations as cancelled where cancelled.job_id = job.id)
    returning job.*
  ), wanted_again as (
    delete from graphile_worker._private_job_retirements where id in (select id from rescheduled)
  )
  select * from rescheduled;
$hathi$;

create or replace function graphile_worker.force_unlock_workers(worker_ids text[])
returns void language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  with locked as materialized (
    select id from graphile_worker._private_jobs where locked_by = any (worker_ids) order by id for update
  )
  update graphile_worker._private_jobs as job
  set locked_at = null, locked_by = null
  from locked
  where job.id = locked.id and job.locked_by = any (worker_ids);
  with locked as materialized (
    select id from graphile_worker._private_job_queues where locked_by = any (worker_ids) order by id for no key update
  )
  update graphile_worker._private_job_queues as queue
  set locked_at = null, locked_by = null
  from locked
  where queue.id = locked.id and queue.locked_by = any (worker_ids);
$hathi$;
