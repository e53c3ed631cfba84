-- What became of jobs, and what they gave.
--
-- What always holds:
--   1. History is written by the statement that settles, from the rows that it changes. A write that is repeated because its response was lost
--      changes nothing and so adds nothing; one that is rolled back leaves nothing.
--   2. No claim reads it, and nothing here has a lock that a settle could wait for: partitions are attached, which admits writers, and dropped
--      with a lock that is given up after 100 ms.
--   3. Every row knows the day it expires on, and is stored with those of the same day. Expiry drops whole partitions. Where the partition of a
--      day is missing, the default partition takes the rows. They stay there until they are deleted: a reader whose plan was made before
--      a move would miss them.
--
-- Days are those of UTC.

-- Attempts that succeeded and gave nothing to keep: one row for each settle, task and block of 4,096 ids, so that an id is found by a range of a
-- plain index, however far apart the ids of a settle are. Elements at the same place belong together.
create table graphile_worker._hathi_history_batches (
  expires_on date not null,
  settled_at timestamptz not null,
  -- Tells rows of the same moment apart, for paging.
  entry bigint not null,
  task_identifier text not null,
  worker_id text not null,
  first_id bigint not null,
  last_id bigint not null,
  job_ids bigint[] not null,
  -- Null if all were first attempts.
  attempts smallint[],
  wait_ms integer[] not null,
  run_ms integer[] not null,
  -- Null if no job has one.
  queue_names text[],
  keys text[]
) partition by range (expires_on);
alter table graphile_worker._hathi_history_batches enable row level security;
create index _hathi_history_batches_by_id on graphile_worker._hathi_history_batches ((first_id >> 12), first_id, last_id);
create index _hathi_history_batches_by_time on graphile_worker._hathi_history_batches (settled_at, entry);
create index _hathi_history_batches_by_task on graphile_worker._hathi_history_batches (task_identifier, settled_at, entry);
create index _hathi_history_batches_by_key on graphile_worker._hathi_history_batches using gin (keys) where keys is not null;
create index _hathi_history_batches_by_queue on graphile_worker._hathi_history_batches using gin (queue_names) where queue_names is not null;
create table graphile_worker._hathi_history_batches_rest partition of graphile_worker._hathi_history_batches default;
alter table graphile_worker._hathi_history_batches_rest enable row level security;

-- Every other attempt: failed, cancelled, snoozed, or succeeded with a result or with its payload kept.
create table graphile_worker._hathi_history_attempts (
  expires_on date not null,
  settled_at timestamptz not null,
  entry bigint not null,
  job_id bigint not null,
  task_identifier text not null,
  queue_name text,
  key text,
  attempt integer not null,
  max_attempts integer not null,
  outcome text not null,
  wait_ms integer not null,
  run_ms integer not null,
  worker_id text not null,
  created_at timestamptz not null,
  error text,
  error_class text,
  -- The same for failures of the same task, class and place in the code.
  fingerprint text,
  -- Where it was thrown; without the message, and of failures only.
  stack text,
  payload json,
  result json
) partition by range (expires_on);
alter table graphile_worker._hathi_history_attempts enable row level security;
create index _hathi_history_attempts_by_id on graphile_worker._hathi_history_attempts (job_id);
-- A page of all outcomes is merged from one of each, so that none has to be searched for among the others.
create index _hathi_history_attempts_by_task on graphile_worker._hathi_history_attempts (task_identifier, outcome, settled_at, entry);
create index _hathi_history_attempts_by_outcome on graphile_worker._hathi_history_attempts (outcome, settled_at, entry);
create index _hathi_history_attempts_by_key on graphile_worker._hathi_history_attempts (key, settled_at, entry) where key is not null;
create index _hathi_history_attempts_by_queue on graphile_worker._hathi_history_attempts (queue_name, settled_at, entry) where queue_name is not null;
create index _hathi_history_attempts_by_fingerprint on graphile_worker._hathi_history_attempts (fingerprint, settled_at) include (job_id, outcome)
  where fingerprint is not null;
create table graphile_worker._hathi_history_attempts_rest partition of graphile_worker._hathi_history_attempts default;
alter table graphile_worker._hathi_history_attempts_rest enable row level security;

-- Which job's task added which jobs: one row for each write and for each pair of blocks of 4,096 ids, so that both ends are found by a range
-- of a plain index. Elements at the same place belong together.
create table graphile_worker._hathi_job_links (
  expires_on date not null,
  first_parent bigint not null,
  last_parent bigint not null,
  parent_ids bigint[] not null,
  first_child bigint not null,
  last_child bigint not null,
  child_ids bigint[] not null
) partition by range (expires_on);
alter table graphile_worker._hathi_job_links enable row level security;
create index _hathi_job_links_by_parent on graphile_worker._hathi_job_links ((first_parent >> 12), first_parent, last_parent);
create index _hathi_job_links_by_child on graphile_worker._hathi_job_links ((first_child >> 12), first_child, last_child);
create table graphile_worker._hathi_job_links_rest partition of graphile_worker._hathi_job_links default;
alter table graphile_worker._hathi_job_links_rest enable row level security;

-- How many failures of each group are kept, so that no one has to count them. A row for each day of expiry, so that groups expire with their failures, and
-- for each of eight slots, so that many workers whose jobs fail alike rarely wait for each other. Settles lock the rows in the order of the key.
create table graphile_worker._hathi_error_groups (
  expires_on date not null,
  fingerprint text not null,
  slot smallint not null,
  task_identifier text not null,
  error_class text not null,
  failures bigint not null,
  first_at timestamptz not null,
  last_at timestamptz not null,
  primary key (expires_on, fingerprint, slot)
) with (fillfactor = 50);
alter table graphile_worker._hathi_error_groups enable row level security;

-- A payload without its secrets. Patterns are keys with dots between them; `*` stands for any one key or index, `**` for any number.
create or replace function graphile_worker._hathi_redact(payload json, patterns text[])
returns json language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  if cardinality(patterns) = 0 then
    return payload;
  end if;
  return graphile_worker._hathi_redact_below(payload::jsonb, patterns)::json;
exception when others then
  -- Whatever cannot be read cannot be redacted, so it is not kept.
  return null;
end;
$hathi$;

create or replace function graphile_worker._hathi_redact_below(value jsonb, patterns text[])
returns jsonb language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  if jsonb_typeof(value) = 'object' then
    return (
      select coalesce(jsonb_object_agg(member.key, graphile_worker._hathi_redact_member(member.key, member.value, patterns)), '{}')
      from jsonb_each(value) as member
    );
  elsif jsonb_typeof(value) = 'array' then
    return (
      select coalesce(
        jsonb_agg(graphile_worker._hathi_redact_member((member.place - 1)::text, member.value, patterns) order by member.place), '[]'
      )
      from jsonb_array_elements(value) with ordinality as member (value, place)
    );
  end if;
  return value;
end;
$hathi$;

create or replace function graphile_worker._hathi_redact_member(key text, value jsonb, patterns text[])
returns jsonb language plpgsql immutable
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  pattern text;
  head text;
  below text[] := '{}';
begin
  foreach pattern in array patterns loop
    if split_part(pattern, '.', 1) = '**' then
      below := below || pattern;
      pattern := substr(pattern, 4);
    end if;
    head := split_part(pattern, '.', 1);
    continue when head not in (key, '*');
    if head = pattern then
      return '"[redacted]"';
    end if;
    below := below || substr(pattern, length(head) + 2);
  end loop;
  return graphile_worker._hathi_redact_below(value, below);
end;
$hathi$;

-- As `_hathi_complete_jobs`, and keeps what became of the jobs. What is kept of a task's jobs is passed once for each task: `kept_as` is
-- 'outcomes', 'full' (with payloads) or 'none' (results only), `kept_days` and `result_days` how long. `tries` are the attempts, null if all are the
-- first: a job that was cancelled while it ran has used up all attempts in the table. `job_ids` must be sorted, because the place of a
-- job among them is searched for by halves: a join of arrays whose lengths no plan knows would compare each with each.
create or replace function graphile_worker._hathi_complete_jobs_kept(
  pool_id text, job_ids bigint[], queue_ids integer[], ended_ids bigint[],
  tries integer[], runs integer[], results text[], kept_tasks integer[], kept_as text[], kept_days integer[], result_days integer[], redacted text[],
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
  told bigint[];
  has_payloads constant boolean := 'full' = any (kept_as);
  today constant date := (now() at time zone 'utc')::date;
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
    returning job.id, job.task_id, job.job_queue_id, job.key, job.max_attempts, job.created_at,
      greatest(job.run_at, job.created_at) as due_at,
      case when has_payloads then job.payload end as payload
  ), ended as materialized (
    select gone.id, gone.task_id, gone.job_queue_id, gone.key, coalesce(tries[place.index], 1) as attempt, gone.max_attempts, gone.created_at, gone.payload,
      rule.kept_as, rule.days, rule.result_days, results[place.index] as result, runs[place.index] as run_ms,
      least(greatest(date_part('epoch', now() - gone.due_at) * 1000 - runs[place.index], 0), 2147483647)::integer as wait_ms
    from gone
    join unnest(kept_tasks, kept_as, kept_days, result_days) as rule (task_id, kept_as, days, result_days) on rule.task_id = gone.task_id
    cross join width_bucket(gone.id, job_ids) as place (index)
  ), batches as (
    insert into graphile_worker._hathi_history_batches (
      expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, attempts, wait_ms, run_ms, queue_names, keys
    )
    select today + 1 + min(ended.days), now(), (random() * 9007199254740991)::bigint,
      coalesce((select task.identifier from graphile_worker._private_tasks as task where task.id = ended.task_id), '?'),
      pool_id, min(ended.id), max(ended.id), array_agg(ended.id),
      case when max(ended.attempt) > 1 then array_agg(ended.attempt::smallint) end,
      array_agg(ended.wait_ms), array_agg(ended.run_ms),
      case when count(ended.job_queue_id) > 0 then array_agg(
        (select queue.queue_name from graphile_worker._private_job_queues as queue where queue.id = ended.job_queue_id)
      ) end,
      case when count(ended.key) > 0 then array_agg(ended.key) end
    from ended
    where ended.kept_as = 'outcomes' and ended.result is null
    group by ended.task_id, ended.id >> 12
  ), attempts as (
    insert into graphile_worker._hathi_history_attempts (
      expires_on, settled_at, entry, job_id, task_identifier, queue_name, key, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id,
      created_at, payload, result
    )
    select today + 1 + greatest(case when ended.result is not null then ended.result_days end, case when ended.kept_as <> 'none' then ended.days end), now(),
      (random() * 9007199254740991)::bigint, ended.id,
      coalesce((select task.identifier from graphile_worker._private_tasks as task where task.id = ended.task_id), '?'),
      (select queue.queue_name from graphile_worker._private_job_queues as queue where queue.id = ended.job_queue_id),
      ended.key, ended.attempt, ended.max_attempts, 'succeeded', ended.wait_ms, ended.run_ms, pool_id, ended.created_at,
      case when ended.kept_as = 'full' then graphile_worker._hathi_redact(ended.payload, redacted) end, ended.result::json
    from ended
    where ended.kept_as = 'full' or ended.result is not null
  )
  select array_agg(gone.id), (select array_agg(ended.id) from ended where ended.result is not null) into done, told from gone;
  if told is not null then
    perform graphile_worker._hathi_tell_ended(told);
  end if;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, done) as missing;
  -- A release that comes without its job comes late.
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null or job_ids = '{}');
end;
$hathi$;

-- Wakes those who wait for these jobs. Without ids, if they would not fit into a notification.
create or replace function graphile_worker._hathi_tell_ended(ids bigint[])
returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  perform pg_notify('hathi:ended', case when cardinality(ids) <= 300 then array_to_json(ids)::text else '[]' end);
end;
$hathi$;

-- Keeps what became of jobs that did not succeed, after that was written: `before` are their rows as they were.
create or replace function graphile_worker._hathi_keep_ended(
  pool_id text, before graphile_worker._private_jobs[], job_ids bigint[], tries integer[], rulings text[], errors text[],
  runs integer[], classes text[], fingerprints text[], stacks text[],
  kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[]
) returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set plan_cache_mode = force_custom_plan
as $hathi$
declare
  told bigint[];
begin
  with ended as materialized (
    select job.id, job.task_id, job.job_queue_id, job.key, job.max_attempts, job.created_at, job.payload,
      greatest(job.run_at, job.created_at) as due_at,
      outcome.attempt, outcome.ruling, outcome.error, outcome.run_ms, outcome.class, outcome.fingerprint, outcome.stack,
      rule.kept_as, rule.days, rule.is_awaited
    from unnest(before) as job
    join unnest(job_ids, tries, rulings, errors, runs, classes, fingerprints, stacks)
      as outcome (id, attempt, ruling, error, run_ms, class, fingerprint, stack) on outcome.id = job.id
    join unnest(kept_tasks, kept_as, kept_days, are_awaited) as rule (task_id, kept_as, days, is_awaited) on rule.task_id = job.task_id
  ), judged as materialized (
    select ended.*, case
      when later.id is null then 'cancelled'
      when ended.ruling = 'snooze' and later.attempts < ended.attempt then 'snoozed'
      when later.attempts >= later.max_attempts then 'permanentlyFailed'
      else 'failed'
    end as outcome
    from ended
    left join graphile_worker._private_jobs as later on later.id = ended.id
  ), kept as (
    insert into graphile_worker._hathi_history_attempts (
      expires_on, settled_at, entry, job_id, task_identifier, queue_name, key, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id,
      created_at, error, error_class, fingerprint, stack, payload
    )
    select (now() at time zone 'utc')::date + 1 + judged.days, now(), (random() * 9007199254740991)::bigint, judged.id,
      coalesce((select task.identifier from graphile_worker._private_tasks as task where task.id = judged.task_id), '?'),
      (select queue.queue_name from graphile_worker._private_job_queues as queue where queue.id = judged.job_queue_id),
      judged.key, judged.attempt, judged.max_attempts, judged.outcome,
      least(greatest(date_part('epoch', now() - judged.due_at) * 1000 - judged.run_ms, 0), 2147483647)::integer, judged.run_ms, pool_id, judged.created_at,
      judged.error, judged.class,
      case when judged.outcome in ('failed', 'permanentlyFailed') then judged.fingerprint end,
      case when judged.outcome in ('failed', 'permanentlyFailed') then judged.stack end,
      case when judged.kept_as = 'full' then graphile_worker._hathi_redact(judged.payload, redacted) end
    from judged
    where judged.kept_as <> 'none'
    returning expires_on, task_identifier, error_class, fingerprint
  ), groups as (
    insert into graphile_worker._hathi_error_groups as known (
      expires_on, fingerprint, slot, task_identifier, error_class, failures, first_at, last_at
    )
    select kept.expires_on, kept.fingerprint, hashtext(pool_id) & 7, min(kept.task_identifier), min(kept.error_class), count(*), now(), now()
    from kept
    where kept.fingerprint is not null
    group by kept.expires_on, kept.fingerprint
    order by kept.expires_on, kept.fingerprint
    on conflict (expires_on, fingerprint, slot) do update
    set failures = known.failures + excluded.failures, first_at = least(known.first_at, excluded.first_at),
      last_at = greatest(known.last_at, excluded.last_at)
  )
  select array_agg(judged.id) into told
  from judged
  where judged.is_awaited and judged.outcome in ('cancelled', 'permanentlyFailed');
  if told is not null then
    perform graphile_worker._hathi_tell_ended(told);
  end if;
end;
$hathi$;

-- Keeps attempts that ended with the death of their workers, after their jobs were recovered; ends those that were cancelled.
create or replace function graphile_worker._hathi_keep_crashed(
  job_ids bigint[], tries integer[], waits double precision[], runs double precision[], worker_ids text[], classes text[], fingerprints text[],
  kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[]
) returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
declare
  died record;
begin
  for died in
    -- Due when it was, so that its wait and its run reach until now.
    select crashed.worker_id,
      array_agg(jsonb_populate_record(job, jsonb_build_object(
        'run_at', now() - (greatest(crashed.wait_ms, 0) + crashed.run_ms) * interval '1 millisecond'
      ))) as before,
      array_agg(crashed.id) as ids, array_agg(crashed.attempt) as tries, array_agg(job.last_error) as errors,
      array_agg(crashed.run_ms::integer) as runs, array_agg(crashed.class) as classes, array_agg(crashed.fingerprint) as fingerprints
    from (
      select entry.id, entry.attempt, entry.worker_id, entry.class, entry.fingerprint, entry.wait_ms, least(greatest(entry.run_ms, 0), 2147483647) as run_ms
      from unnest(job_ids, tries, waits, runs, worker_ids, classes, fingerprints)
        as entry (id, attempt, wait_ms, run_ms, worker_id, class, fingerprint)
    ) as crashed
    join graphile_worker._private_jobs as job on job.id = crashed.id
    group by crashed.worker_id
  loop
    perform graphile_worker._hathi_bury_cancelled(died.ids);
    perform graphile_worker._hathi_keep_ended(
      died.worker_id, died.before, died.ids, died.tries, null, died.errors, died.runs, died.classes, died.fingerprints, null,
      kept_tasks, kept_as, kept_days, are_awaited, redacted
    );
  end loop;
end;
$hathi$;

-- As `_hathi_fail_jobs`, and keeps what became of the jobs.
create or replace function graphile_worker._hathi_fail_jobs_kept(
  pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[], ended_ids bigint[],
  in_doubt boolean,
  runs integer[], classes text[], fingerprints text[], stacks text[],
  kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[],
  out lost bigint[], out held bigint[], out held_queues integer[], out cancelled bigint[]
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
  before graphile_worker._private_jobs[];
  mine bigint[] := '{}';
  left_alone bigint[];
begin
  select array_agg(locked.job), coalesce(array_agg((locked.job).id), '{}') into before, mine
  from (
    select job
    from graphile_worker._private_jobs as job
    where job.id = any (job_ids) and job.locked_by = pool_id
    order by job.id
    for update skip locked
  ) as locked;
  if before is not null then
    -- Only what is locked already: what another transaction lets go of in this moment is for the next statement.
    select written.lost, written.cancelled into left_alone, cancelled
    from (
      select array_agg(outcome.id) as ids, array_agg(outcome.attempt) as tries, array_agg(outcome.error) as errors,
        array_agg(outcome.payload) as payloads
      from unnest(job_ids, tries, errors, payloads) as outcome (id, attempt, error, payload)
      where outcome.id = any (mine)
    ) as ours,
    graphile_worker._hathi_fail_jobs(pool_id, ours.ids, ours.tries, ours.errors, ours.payloads, null, '{}', in_doubt) as written;
    if left_alone is not null then
      before := array(select job from unnest(before) as job where job.id <> all (left_alone));
    end if;
    perform graphile_worker._hathi_keep_ended(
      pool_id, before, job_ids, tries, null, errors, runs, classes, fingerprints, stacks, kept_tasks, kept_as, kept_days, are_awaited, redacted
    );
  end if;
  if in_doubt then
    cancelled := cancelled || graphile_worker._hathi_cancelled_before(job_ids);
  end if;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, mine) as missing;
  lost := nullif(coalesce(lost, '{}') || coalesce(left_alone, '{}'), '{}');
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
end;
$hathi$;

-- As `_hathi_rule_jobs`, and keeps what became of the jobs.
create or replace function graphile_worker._hathi_rule_jobs_kept(
  pool_id text, job_ids bigint[], tries integer[], rulings text[], errors text[], payloads text[], delays double precision[],
  run_ats timestamptz[], caps integer[], tokens text[], queue_ids integer[], ended_ids bigint[],
  in_doubt boolean,
  runs integer[], classes text[], fingerprints text[], stacks text[],
  kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[],
  out lost bigint[], out held bigint[], out held_queues integer[], out refused bigint[], out cancelled bigint[]
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
  before graphile_worker._private_jobs[];
  mine bigint[] := '{}';
  left_alone bigint[];
begin
  select array_agg(locked.job), coalesce(array_agg((locked.job).id), '{}') into before, mine
  from (
    select job
    from graphile_worker._private_jobs as job
    where job.id = any (job_ids) and job.locked_by = pool_id
    order by job.id
    for update skip locked
  ) as locked;
  if before is not null then
    select written.lost, written.refused, written.cancelled into left_alone, refused, cancelled
    from (
      select array_agg(outcome.id) as ids, array_agg(outcome.attempt) as tries, array_agg(outcome.ruling) as rulings,
        array_agg(outcome.error) as errors, array_agg(outcome.payload) as payloads, array_agg(outcome.delay) as delays,
        array_agg(outcome.run_at) as run_ats, array_agg(outcome.cap) as caps, array_agg(outcome.token) as tokens
      from unnest(job_ids, tries, rulings, errors, payloads, delays, run_ats, caps, tokens)
        as outcome (id, attempt, ruling, error, payload, delay, run_at, cap, token)
      where outcome.id = any (mine)
    ) as ours,
    graphile_worker._hathi_rule_jobs(
      pool_id, ours.ids, ours.tries, ours.rulings, ours.errors, ours.payloads, ours.delays, ours.run_ats, ours.caps, ours.tokens, null, '{}',
      in_doubt
    ) as written;
    if left_alone is not null then
      before := array(select job from unnest(before) as job where job.id <> all (left_alone));
    end if;
    perform graphile_worker._hathi_keep_ended(
      pool_id, before, job_ids, tries, rulings, errors, runs, classes, fingerprints, stacks, kept_tasks, kept_as, kept_days, are_awaited, redacted
    );
  end if;
  if in_doubt then
    cancelled := cancelled || graphile_worker._hathi_cancelled_before(job_ids);
  end if;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, mine) as missing;
  lost := nullif(coalesce(lost, '{}') || coalesce(left_alone, '{}'), '{}');
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
end;
$hathi$;

-- One page of history, newest first; null means that it does not matter. The place to go on from is that of the last row of the page before.
create or replace function graphile_worker._hathi_list_history(
  task text, queue text, job_key text, outcomes text[], print text, since timestamptz, until timestamptz,
  after_at timestamptz, after_entry bigint, after_id bigint, size integer
) returns table (
  job_id bigint, task_identifier text, queue_name text, key text, attempt integer, max_attempts integer, outcome text,
  settled_at timestamptz, entry bigint, wait_ms integer, run_ms integer, worker_id text, error text, error_class text, fingerprint text
) language plpgsql stable
  set search_path = pg_catalog, pg_temp
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_seqscan = off
  set plan_cache_mode = force_custom_plan
as $hathi$
#variable_conflict use_column
begin
  return query
  with page as materialized (
    select batch.settled_at, batch.entry, batch.task_identifier, batch.worker_id, batch.job_ids, batch.attempts, batch.wait_ms,
      batch.run_ms, batch.queue_names, batch.keys
    from graphile_worker._hathi_history_batches as batch
    where (task is null or batch.task_identifier = task)
      and (queue is null or batch.queue_names @> array[queue])
      and (job_key is null or batch.keys @> array[job_key])
      and (outcomes is null or 'succeeded' = any (outcomes))
      and print is null
      and (since is null or batch.settled_at >= since)
      and (until is null or batch.settled_at < until)
      and (after_at is null or (batch.settled_at, batch.entry) <= (after_at, after_entry))
    order by batch.settled_at desc, batch.entry desc
    -- Each has a job to show, except perhaps the first, with which the page before ended.
    limit size + 1
  ), succeeded as (
    select job.id, page.task_identifier, job.queue_name, job.key, coalesce(job.attempt, 1)::integer, null::integer, 'succeeded',
      page.settled_at, page.entry, job.wait_ms, job.run_ms, page.worker_id, null::text, null::text, null::text
    from page
    cross join unnest(page.job_ids, page.attempts, page.wait_ms, page.run_ms, page.queue_names, page.keys)
      as job (id, attempt, wait_ms, run_ms, queue_name, key)
    where (queue is null or job.queue_name = queue)
      and (job_key is null or job.key = job_key)
      and (after_at is null or (page.settled_at, page.entry, job.id) < (after_at, after_entry, after_id))
    order by page.settled_at desc, page.entry desc, job.id desc
    limit size
  ), single as (
    select attempt.job_id, attempt.task_identifier, attempt.queue_name, attempt.key, attempt.attempt, attempt.max_attempts, attempt.outcome,
      attempt.settled_at, attempt.entry, attempt.wait_ms, attempt.run_ms, attempt.worker_id, attempt.error, attempt.error_class,
      attempt.fingerprint
    from graphile_worker._hathi_history_attempts as attempt
    where (queue is not null or job_key is not null or print is not null)
      and (task is null or attempt.task_identifier = task)
      and (queue is null or attempt.queue_name = queue)
      and (job_key is null or attempt.key = job_key)
      and (outcomes is null or attempt.outcome = any (outcomes))
      and (print is null or attempt.fingerprint = print)
      and (since is null or attempt.settled_at >= since)
      and (until is null or attempt.settled_at < until)
      and (after_at is null or (attempt.settled_at, attempt.entry) < (after_at, after_entry))
    order by attempt.settled_at desc, attempt.entry desc
    limit size
  ), by_outcome as (
    select found.*
    from unnest(coalesce(outcomes, '{succeeded,failed,permanentlyFailed,cancelled,snoozed}')) as wanted (outcome)
    cross join lateral (
      select attempt.job_id, attempt.task_identifier, attempt.queue_name, attempt.key, attempt.attempt, attempt.max_attempts, attempt.outcome,
        attempt.settled_at, attempt.entry, attempt.wait_ms, attempt.run_ms, attempt.worker_id, attempt.error, attempt.error_class,
        attempt.fingerprint
      from graphile_worker._hathi_history_attempts as attempt
      where queue is null and job_key is null and print is null
        and attempt.outcome = wanted.outcome
        and (task is null or attempt.task_identifier = task)
        and (since is null or attempt.settled_at >= since)
        and (until is null or attempt.settled_at < until)
        and (after_at is null or (attempt.settled_at, attempt.entry) < (after_at, after_entry))
      order by attempt.settled_at desc, attempt.entry desc
      limit size
    ) as found
  )
  select * from (select * from succeeded union all select * from single union all select * from by_outcome) as all_kinds
  order by 8 desc, 9 desc, 1 desc
  limit size;
end;
$hathi$;

-- Everything that is kept of these jobs, oldest first.
create or replace function graphile_worker._hathi_find_history(ids bigint[])
returns table (
  job_id bigint, task_identifier text, queue_name text, key text, attempt integer, max_attempts integer, outcome text,
  settled_at timestamptz, entry bigint, wait_ms integer, run_ms integer, worker_id text, error text, error_class text, fingerprint text,
  stack text, created_at timestamptz, payload json, result json
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
begin
  return query
  select * from (
    select wanted.id, batch.task_identifier, batch.queue_names[place.index], batch.keys[place.index],
      coalesce(batch.attempts[place.index], 1)::integer, null::integer, 'succeeded',
      batch.settled_at, batch.entry, batch.wait_ms[place.index], batch.run_ms[place.index], batch.worker_id,
      null::text, null::text, null::text, null::text, null::timestamptz, null::json, null::json
    from unnest(ids) as wanted (id)
    join graphile_worker._hathi_history_batches as batch
      on batch.first_id >> 12 = wanted.id >> 12 and batch.first_id <= wanted.id and batch.last_id >= wanted.id
    cross join array_position(batch.job_ids, wanted.id) as place (index)
    where place.index is not null
    union all
    select attempt.job_id, attempt.task_identifier, attempt.queue_name, attempt.key, attempt.attempt, attempt.max_attempts, attempt.outcome,
      attempt.settled_at, attempt.entry, attempt.wait_ms, attempt.run_ms, attempt.worker_id, attempt.error, attempt.error_class,
      attempt.fingerprint, attempt.stack, attempt.created_at, attempt.payload, attempt.result
    from graphile_worker._hathi_history_attempts as attempt
    where attempt.job_id = any (ids)
  ) as both_kinds
  order by 1, 8, 9;
end;
$hathi$;

-- Keeps which jobs added which, each for so many days. A task may add jobs in a transaction of its own, under a role that has no right to this table: then
-- nothing is kept, and its transaction goes on.
create or replace function graphile_worker._hathi_link_jobs(parent_ids bigint[], child_ids bigint[], kept_days integer[])
returns void language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
begin
  if not has_table_privilege((select typrelid from pg_type where oid = pg_typeof(null::graphile_worker._hathi_job_links)), 'insert') then
    return;
  end if;
  for try in 1..3 loop
    begin
      insert into graphile_worker._hathi_job_links (expires_on, first_parent, last_parent, parent_ids, first_child, last_child, child_ids)
      select (now() at time zone 'utc')::date + 1 + link.days, min(link.parent), max(link.parent), array_agg(link.parent order by link.child, link.parent),
        min(link.child), max(link.child), array_agg(link.child order by link.child, link.parent)
      from unnest(parent_ids, child_ids, kept_days) as link (parent, child, days)
      group by link.days, link.parent >> 12, link.child >> 12;
      return;
    exception when check_violation then
      -- A worker has just made the partition: the next try finds it.
      null;
    end;
  end loop;
end;
$hathi$;

-- What added a job, and what the job has added; of each as many as are asked for, in the order of their ids.
create or replace function graphile_worker._hathi_find_links(id bigint, size integer)
returns table (is_child boolean, job_id bigint) language plpgsql stable
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
  wanted constant bigint := id;
begin
  -- Not sorted before it is cut off: a job may have added a million others.
  return query
  select distinct false, found.parent
  from (
    select link.parent
    from graphile_worker._hathi_job_links as entry
    cross join unnest(entry.parent_ids, entry.child_ids) as link (parent, child)
    where entry.first_child >> 12 = wanted >> 12 and entry.first_child <= wanted and entry.last_child >= wanted and link.child = wanted
    limit size
  ) as found
  union all
  select distinct true, found.child
  from (
    select link.child
    from graphile_worker._hathi_job_links as entry
    cross join unnest(entry.parent_ids, entry.child_ids) as link (parent, child)
    where entry.first_parent >> 12 = wanted >> 12 and entry.first_parent <= wanted and entry.last_parent >= wanted and link.parent = wanted
    limit size
  ) as found
  order by 1, 2;
end;
$hathi$;

-- The days whose rows went to the default partition: those get no partition of their own any more.
create or replace function graphile_worker._hathi_unplaced_days(stem text)
returns setof date language sql stable
  set search_path = pg_catalog, pg_temp
as $hathi$
  select expires_on from graphile_worker._hathi_history_batches_rest where stem = '_hathi_history_batches'
  union
  select expires_on from graphile_worker._hathi_history_attempts_rest where stem = '_hathi_history_attempts'
  union
  select expires_on from graphile_worker._hathi_job_links_rest where stem = '_hathi_job_links'
$hathi$;

-- One step: makes the partitions of today that are missing, or else one of the next two days, or else drops one that has expired. `days` says for how
-- many days anything is kept. True if there may be more to do, null if another session is doing it. Little is done at a time, so that no lock is held for
-- long, and what others hold is left for later.
create or replace function graphile_worker._hathi_tend_history_on(days integer[], today date)
returns boolean language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
declare
  batches constant oid := (select typrelid from pg_type where oid = pg_typeof(null::graphile_worker._hathi_history_batches));
  attempts constant oid := (select typrelid from pg_type where oid = pg_typeof(null::graphile_worker._hathi_history_attempts));
  links constant oid := (select typrelid from pg_type where oid = pg_typeof(null::graphile_worker._hathi_job_links));
  home constant text := (select relnamespace::regnamespace::text from pg_class where oid = batches);
  missing record;
  has_made boolean := false;
  expired oid;
begin
  if not pg_try_advisory_xact_lock(19, batches::integer) then
    return null;
  end if;
  for missing in
    select wanted.parent, wanted.stem || '_' || to_char(wanted.day, 'YYYYMMDD') as part, wanted.day, wanted.ahead
    from (
      select class.oid as parent, class.relname as stem, class.relnamespace as home, today + 1 + kept.days + ahead as day, min(ahead) as ahead
      from pg_class as class, unnest(days) as kept (days), generate_series(0, 2) as ahead
      where class.oid in (batches, attempts, links) and kept.days between 0 and 36500
      group by 1, 2, 3, 4
    ) as wanted
    where wanted.day not in (select graphile_worker._hathi_unplaced_days(wanted.stem))
      and not exists (
        select from pg_class as made
        where made.relname = wanted.stem || '_' || to_char(wanted.day, 'YYYYMMDD') and made.relnamespace = wanted.home
      )
    order by wanted.ahead, wanted.parent, wanted.day
  loop
    exit when has_made and missing.ahead > 0;
    begin
      execute format('create table %s.%I (like %s including all)', home, missing.part, missing.parent::regclass);
      execute format('alter table %s.%I enable row level security', home, missing.part);
      execute format(
        'alter table %s attach partition %s.%I for values from (%L) to (%L)',
        missing.parent::regclass, home, missing.part, missing.day, missing.day + 1
      );
      has_made := true;
    exception when lock_not_available or deadlock_detected or check_violation then
      -- Another session reads for long, or a row of that day has just gone to the default partition.
      null;
    end;
  end loop;
  if has_made then
    return true;
  end if;
  delete from graphile_worker._hathi_history_batches_rest where expires_on <= today;
  delete from graphile_worker._hathi_history_attempts_rest where expires_on <= today;
  delete from graphile_worker._hathi_job_links_rest where expires_on <= today;
  delete from graphile_worker._hathi_error_groups
  where ctid = any (array(
    select ctid from graphile_worker._hathi_error_groups where expires_on <= today for update skip locked
  ));
  select class.oid into expired
  from pg_inherits
  join pg_class as class on class.oid = inhrelid
  where inhparent in (batches, attempts, links) and class.relname ~ '_[0-9]{8}$' and to_date(right(class.relname, 8), 'YYYYMMDD') <= today
  order by right(class.relname, 8)
  limit 1;
  if expired is null then
    return false;
  end if;
  execute format('drop table %s', expired::regclass);
  return true;
exception when lock_not_available or deadlock_detected then
  return false;
end;
$hathi$;

-- The same for today, on behalf of the owner: workers may have no right to make tables.
create or replace function graphile_worker._hathi_tend_history(days integer[])
returns boolean language sql volatile security definer
  set search_path = pg_catalog, pg_temp
as $hathi$
  select graphile_worker._hathi_tend_history_on(days, (now() at time zone 'utc')::date)
$hathi$;
revoke execute on function graphile_worker._hathi_tend_history(integer[]) from public;
