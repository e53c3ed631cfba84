-- Guards of an add: debounce, throttle and singleton. Each says what happens to a new job if there was one of the same key before. A key belongs
-- to its task and its kind of guard.
--
-- What always holds, for adds from any number of processes and transactions (only what is committed counts):
--   1. Debounce: of a key at most one job waits, with the payload of the last add. It falls due `delay` after the last add, but no later than
--      the shortest `maxWait` of its adds after the first of them. An add beside a running job starts anew.
--   2. Throttle: between two adds of a key that made a job at least `period` passed, whatever became of the first job.
--   3. Singleton: of a key at most one job waits and at most one runs. With `skip` it is at most one in all. With `replace` and
--      `cancelRunning` the new job waits beside the running one and starts when that has ended: both are in one queue.
--   4. A running job that a newer one of its key took the place of is retired: it may finish, but never waits again.
--   5. Locks are taken in the order tasks, queues (by name), guards (by task, kind and key), jobs (by id), new job keys. No worker reads or
--      locks a guard, so no claim and no settle waits for an application here.
-- What is beyond these: a permanently failed job counts as gone, and who lets it run again by hand has it beside its successor; and a job
-- added with `skip` has no queue of its own, so `replace` with the same key may start beside it.

create table graphile_worker._hathi_add_guards (
  task_identifier text not null,
  kind text not null,
  key text not null,
  -- The last job that was added under the key, and the one that was running at that moment.
  job_id bigint,
  running_id bigint,
  -- When `job_id` was added; of a debounced one, when it was first added.
  since timestamptz not null,
  -- Debounce: the latest moment to fall due. Throttle: the end of the period.
  until timestamptz not null default 'infinity',
  -- The row may go then, if none of its jobs waits or runs.
  expires_at timestamptz not null,
  constraint _hathi_add_guards_pkey primary key (task_identifier, kind, key),
  constraint _hathi_add_guards_kind_check check (kind in ('debounce', 'throttle', 'singleton'))
);
create index _hathi_add_guards_by_expiry_idx on graphile_worker._hathi_add_guards (expires_at);
alter table graphile_worker._hathi_add_guards enable row level security;

-- A job on its way in, with its guard if it has one. `span` is the delay of a debounce or the period of a throttle.
create type graphile_worker._hathi_guarded_spec as (
  identifier text,
  payload json,
  queue_name text,
  run_at timestamptz,
  max_attempts smallint,
  job_key text,
  priority smallint,
  flags text[],
  job_key_mode text,
  guard text,
  guard_key text,
  span interval,
  max_wait interval,
  on_conflict text
);

-- The queue of a singleton that names none. Short names stay readable.
create or replace function graphile_worker._hathi_singleton_queue(identifier text, guard_key text)
returns text language sql immutable set search_path = pg_catalog, pg_temp as $hathi$
  select case
    when length(name.whole) <= 128 then name.whole
    else left(name.whole, 111) || '#' || to_hex(hashtextextended(name.whole, 0))
  end
  from (select 'singleton:' || identifier || ':' || guard_key as whole) as name;
$hathi$;

-- Locks the guard of a key, and makes it if it is missing.
create or replace function graphile_worker._hathi_lock_guard(wanted_task text, wanted_kind text, wanted_key text)
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  loop
    perform from graphile_worker._hathi_add_guards as guard
    where guard.task_identifier = wanted_task and guard.kind = wanted_kind and guard.key = wanted_key
    for no key update;
    exit when found;
    insert into graphile_worker._hathi_add_guards (task_identifier, kind, key, since, until, expires_at)
    values (wanted_task, wanted_kind, wanted_key, '-infinity', '-infinity', 'infinity')
    on conflict do nothing;
    exit when found;
  end loop;
end;
$hathi$;

-- Adds one job under its guard, which is locked, as are the jobs that it may change. See below for what it gives.
create or replace function graphile_worker._hathi_pass_guard(
  spec graphile_worker._hathi_guarded_spec, moment timestamptz, out job graphile_worker._private_jobs, out skipped text
) language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  guard graphile_worker._hathi_add_guards;
  waiting graphile_worker._private_jobs;
  running graphile_worker._private_jobs;
  starts timestamptz := coalesce(spec.run_at, least(moment, now()));
  first_add timestamptz := moment;
  deadline timestamptz := 'infinity';
  queue integer;
  task constant integer := graphile_worker._hathi_task_id(spec.identifier);
begin
  select * into guard
  from graphile_worker._hathi_add_guards as own
  where own.task_identifier = spec.identifier and own.kind = spec.guard and own.key = spec.guard_key;
  -- Whoever starts the ids anew may give an id to a job of another task.
  select * into waiting
  from graphile_worker._private_jobs as known
  where known.id = guard.job_id and known.task_id = task and known.is_available;
  select * into running
  from graphile_worker._private_jobs as known
  where known.id in (guard.job_id, guard.running_id) and known.task_id = task and known.locked_at is not null
  order by known.id desc
  limit 1;

  if spec.guard = 'throttle' and moment < greatest(guard.until, guard.since + spec.span) then
    skipped := 'throttle';
    select * into job from graphile_worker._private_jobs as known where known.id = guard.job_id and known.task_id = task;
    if not found then
      job.id := guard.job_id;
      job.task_id := task;
      job.created_at := guard.since;
    end if;
    return;
  elsif spec.guard = 'singleton' and spec.on_conflict = 'skip' and coalesce(waiting.id, running.id) is not null then
    skipped := 'singleton';
    job := case when waiting.id is not null then waiting else running end;
    return;
  end if;

  if spec.guard = 'throttle' then
    deadline := moment + spec.span;
    waiting := null;
  elsif spec.guard = 'debounce' then
    -- What has been tried has started: its promise is kept.
    if waiting.attempts = 0 then
      first_add := guard.since;
      deadline := guard.until;
    end if;
    deadline := least(deadline, first_add + spec.max_wait);
    starts := least(moment + spec.span, deadline);
  end if;

  if running.id is not null and spec.guard <> 'throttle' then
    if spec.on_conflict = 'cancelRunning' then
      perform graphile_worker.cancel_jobs(array[running.id], 'Replaced by a new job with the singleton key ' || quote_literal(spec.guard_key));
    else
      insert into graphile_worker._private_job_retirements (id) values (running.id) on conflict do nothing;
      update graphile_worker._private_jobs as known
      set attempts = known.max_attempts, updated_at = now()
      where known.id = running.id;
    end if;
  end if;

  -- Beside a running job of its key a singleton goes to the queue of that one, so that it cannot start before.
  if spec.guard = 'singleton' and spec.on_conflict <> 'skip' then
    queue := coalesce(
      running.job_queue_id,
      graphile_worker._hathi_queue_id(
        coalesce(spec.queue_name, graphile_worker._hathi_singleton_queue(spec.identifier, spec.guard_key))
      )
    );
  else
    queue := graphile_worker._hathi_queue_id(spec.queue_name);
  end if;

  if waiting.id is not null then
    update graphile_worker._private_jobs as known
    set
      job_queue_id = queue,
      payload = coalesce(spec.payload, '{}'::json),
      run_at = starts,
      max_attempts = coalesce(spec.max_attempts, 25::smallint),
      priority = coalesce(spec.priority, 0::smallint),
      flags = graphile_worker._hathi_flags(spec.flags),
      revision = known.revision + 1,
      attempts = 0,
      last_error = null,
      updated_at = now()
    where known.id = waiting.id
    returning * into job;
  else
    insert into graphile_worker._private_jobs (job_queue_id, task_id, payload, run_at, max_attempts, priority, flags)
    values (
      queue, task, coalesce(spec.payload, '{}'::json), starts, coalesce(spec.max_attempts, 25::smallint),
      coalesce(spec.priority, 0::smallint), graphile_worker._hathi_flags(spec.flags)
    )
    returning * into job;
  end if;

  update graphile_worker._hathi_add_guards as own
  set
    job_id = job.id,
    running_id = running.id,
    since = first_add,
    until = deadline,
    expires_at = case when spec.guard = 'throttle' then deadline else greatest(starts, moment) + interval '1 hour' end
  where own.task_identifier = spec.identifier and own.kind = spec.guard and own.key = spec.guard_key;
end;
$hathi$;

-- Adds jobs, some or all with a guard. Gives a row for each spec, in their order. If nothing was added for it, `skipped` is the kind
-- of its guard and `job` the one that stood in the way; of a job that has ended, only its id, its task and when it was added are known.
create or replace function graphile_worker._hathi_add_guarded(
  specs graphile_worker._hathi_guarded_spec[], clock timestamptz
) returns table (job graphile_worker._private_jobs, skipped text) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  wanted record;
  passed record;
  spec graphile_worker._hathi_guarded_spec;
  nth integer;
  moment timestamptz;
  added integer := 0;
  jobs graphile_worker._private_jobs[];
  skips text[];
begin
  perform graphile_worker._hathi_keep_tasks(array(select distinct given.identifier from unnest(specs) as given));
  perform graphile_worker._hathi_keep_queues(array(
    select distinct coalesce(
      given.queue_name,
      case when given.on_conflict <> 'skip' then graphile_worker._hathi_singleton_queue(given.identifier, given.guard_key) end
    )
    from unnest(specs) as given
    where given.queue_name is not null or given.on_conflict <> 'skip'
  ));
  for wanted in
    select distinct given.identifier collate "C" as task, given.guard, given.guard_key collate "C" as key
    from unnest(specs) as given
    where given.guard is not null
    order by task, given.guard, key
  loop
    perform graphile_worker._hathi_lock_guard(wanted.task, wanted.guard, wanted.key);
  end loop;
  -- From now on no other add of these keys can come between; a transaction may have begun long before.
  moment := coalesce(clock, clock_timestamp());

  -- Every job that may be changed, those of job keys too: they would be locked later otherwise, out of order.
  perform from graphile_worker._private_jobs as known
  where known.id in (
    select unnest(array[held.job_id, held.running_id])
    from unnest(specs) as given
    join graphile_worker._hathi_add_guards as held
      on held.task_identifier = given.identifier and held.kind = given.guard and held.key = given.guard_key
    where given.guard = 'debounce' or given.on_conflict <> 'skip'
    union all
    select keyed.id
    from unnest(specs) as given
    join graphile_worker._private_jobs as keyed on keyed.key = given.job_key
  )
  order by known.id
  for update;

  -- New job keys are written in their order; everything else in the order in which it was given.
  for nth in
    select position from generate_subscripts(specs, 1) as position order by (specs[position]).job_key, position
  loop
    spec := specs[nth];
    if spec.guard is not null then
      passed := graphile_worker._hathi_pass_guard(spec, moment);
      job := passed.job;
      skipped := passed.skipped;
      added := added + (skipped is null)::integer;
    else
      skipped := null;
      job := graphile_worker.add_job(
        identifier => spec.identifier,
        payload => spec.payload,
        queue_name => spec.queue_name,
        run_at => spec.run_at,
        max_attempts => spec.max_attempts,
        job_key => spec.job_key,
        priority => spec.priority,
        flags => spec.flags,
        job_key_mode => coalesce(spec.job_key_mode, 'replace')
      );
    end if;
    jobs[nth] := job;
    skips[nth] := skipped;
  end loop;
  if added > 0 then
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || added || '}');
  end if;
  for nth in 1 .. cardinality(specs) loop
    job := jobs[nth];
    skipped := skips[nth];
    return next;
  end loop;
end;
$hathi$;

-- The same for one job, from SQL. Gives null if the add was skipped.
create or replace function graphile_worker._hathi_add_checked(spec graphile_worker._hathi_guarded_spec)
returns graphile_worker._private_jobs language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  added graphile_worker._private_jobs;
begin
  perform graphile_worker._hathi_check_spec(spec.identifier, spec.queue_name, null, spec.max_attempts, spec.priority);
  if spec.guard_key is null or length(spec.guard_key) not between 1 and 512 then
    raise exception 'The key of a % must have 1 to 512 characters, got %.', spec.guard, coalesce(length(spec.guard_key)::text, 'null')
      using errcode = 'GWBJK';
  end if;
  if spec.guard <> 'singleton' and (spec.span is null or spec.span <= interval '0') then
    raise exception 'The % of a % must be longer than zero, got %.',
      case spec.guard when 'debounce' then 'delay' else 'period' end, spec.guard, coalesce(spec.span::text, 'null')
      using errcode = '22023';
  end if;
  if spec.max_wait < spec.span then
    raise exception 'max_wait (%) must not be shorter than delay (%).', spec.max_wait, spec.span using errcode = '22023';
  end if;
  if spec.guard = 'singleton' and (spec.on_conflict is null or spec.on_conflict not in ('skip', 'replace', 'cancelRunning')) then
    raise exception 'Invalid on_conflict %.', coalesce(quote_literal(spec.on_conflict), 'null')
      using errcode = '22023', hint = 'Use skip, replace or cancelRunning.';
  end if;
  select (result.job).* into added from graphile_worker._hathi_add_guarded(array[spec], null) as result where result.skipped is null;
  return added;
end;
$hathi$;

create or replace function graphile_worker.add_debounced_job(
  identifier text,
  payload json,
  key text,
  delay interval,
  max_wait interval default null,
  queue_name text default null,
  max_attempts integer default null,
  priority integer default null,
  flags text[] default null
) returns graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, null, max_attempts, null, priority, flags, null, 'debounce', key, delay, max_wait, null
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

create or replace function graphile_worker.add_throttled_job(
  identifier text,
  payload json,
  key text,
  period interval,
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts integer default null,
  priority integer default null,
  flags text[] default null
) returns graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, run_at, max_attempts, null, priority, flags, null, 'throttle', key, period, null, null
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

create or replace function graphile_worker.add_singleton_job(
  identifier text,
  payload json,
  key text,
  on_conflict text default 'skip',
  queue_name text default null,
  run_at timestamptz default null,
  max_attempts integer default null,
  priority integer default null,
  flags text[] default null
) returns graphile_worker._private_jobs language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, run_at, max_attempts, null, priority, flags, null, 'singleton', key, null, null, on_conflict
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

-- Deletes up to `most` guards that have expired and whose jobs neither wait nor run; the others are left for another hour. It reads only what
-- has expired. Gives how many it has seen: fewer than `most`, if there are no more.
create or replace function graphile_worker._hathi_tidy_guards(most integer)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
declare
  seen integer;
begin
  with due as materialized (
    select guard.task_identifier, guard.kind, guard.key,
      guard.kind <> 'throttle' and exists (
        select from graphile_worker._private_jobs as known
        where known.id in (guard.job_id, guard.running_id) and (known.is_available or known.locked_at is not null)
      ) as is_needed
    from graphile_worker._hathi_add_guards as guard
    where guard.expires_at <= now()
    order by guard.expires_at
    limit most
    for no key update skip locked
  ), kept as (
    update graphile_worker._hathi_add_guards as guard
    set expires_at = now() + interval '1 hour'
    from due
    where due.is_needed and guard.task_identifier = due.task_identifier and guard.kind = due.kind and guard.key = due.key
  ), gone as (
    delete from graphile_worker._hathi_add_guards as guard
    using due
    where not due.is_needed and guard.task_identifier = due.task_identifier and guard.kind = due.kind and guard.key = due.key
  )
  select count(*) into seen from due;
  return seen;
end;
$hathi$;
