-- Figures about the whole table, collected by one worker at a time for all that are monitored.
--
-- What always holds:
--   1. Every process asks with one statement, at intervals that grow with the number of processes: together they ask about once a second.
--   2. Figures are collected by whoever asks first once they are old, under the lock of the only row; the others take what there is and do not
--      wait. Collecting takes at most about a hundredth of the time.
--   3. No scan reads more than a fixed number of rows or pages, however many jobs there are.
--   4. A caller that may not write gets figures, too: those of the others while they are fresh, otherwise its own.

create table graphile_worker._hathi_rollup (
  id boolean primary key default true constraint _hathi_rollup_only_row check (id),
  -- Null until the first time.
  refreshed_at timestamptz,
  due_at timestamptz not null default '-infinity',
  refreshes bigint not null default 0,
  data jsonb not null default '{}',
  -- Who held back vacuum when that was last reported.
  warned text[] not null default '{}'
);
alter table graphile_worker._hathi_rollup enable row level security;
insert into graphile_worker._hathi_rollup default values;

create table graphile_worker._hathi_rollup_readers (
  reader text primary key,
  read_at timestamptz not null
);
alter table graphile_worker._hathi_rollup_readers enable row level security;

-- Who keeps vacuum from clearing finished jobs away, the worst first. `seconds` is null where PostgreSQL does not say since when.
create or replace function graphile_worker._hathi_vacuum_holders()
returns table (kind text, name text, seconds double precision, transactions integer, what text, remedy text)
language sql stable set search_path = pg_catalog, pg_temp as $hathi$
  select * from (
    select 'session' as kind, activity.pid::text as name,
      extract(epoch from clock_timestamp() - activity.xact_start)::float8 as seconds,
      greatest(age(activity.backend_xmin), age(activity.backend_xid)) as transactions,
      format('process %s of %s (%s)', activity.pid, coalesce(activity.usename, '?'),
        concat_ws(', ', nullif(activity.application_name, ''), activity.state)) as what,
      format('select pg_terminate_backend(%s)', activity.pid) as remedy
    from pg_stat_activity as activity
    where activity.datname = current_database() and activity.pid <> pg_backend_pid() and activity.xact_start is not null
      and (activity.backend_xmin is not null or activity.backend_xid is not null)
      and activity.backend_type <> 'autovacuum worker' and activity.query !~* '^vacuum'
    union all
    select 'prepared', prepared.gid, extract(epoch from clock_timestamp() - prepared.prepared)::float8, age(prepared.transaction),
      format('prepared transaction %L of %s', prepared.gid, prepared.owner), format('rollback prepared %L', prepared.gid)
    from pg_prepared_xacts as prepared
    where prepared.database = current_database()
    union all
    select 'slot', slot.slot_name::text, null, age(slot.xmin),
      format('replication slot %s (%s)', slot.slot_name, case when slot.active then 'active' else 'inactive' end),
      case when slot.active then 'end long queries on its standby, or set hot_standby_feedback = off there'
        else format('select pg_drop_replication_slot(%L)', slot.slot_name) end
    from pg_replication_slots as slot
    where slot.xmin is not null
    union all
    select 'standby', coalesce(nullif(standby.application_name, ''), standby.pid::text), null, age(standby.backend_xmin),
      format('standby %s', coalesce(nullif(standby.application_name, ''), standby.client_addr::text)),
      'end long queries on that standby, or set hot_standby_feedback = off there'
    from pg_stat_replication as standby
    where standby.backend_xmin is not null
  ) as holder
  order by holder.transactions desc nulls last, holder.seconds desc nulls last;
$hathi$;

-- Waiting jobs of one task: of those outside of named queues and of those in them, at most `cap` each are counted. A function whose plan is kept:
-- there may be hundreds of tasks, and planning takes longer than counting the jobs of most.
create or replace function graphile_worker._hathi_count_waiting(task integer, cap integer)
returns table (waiting bigint, scheduled bigint, is_capped boolean, oldest timestamptz)
language plpgsql stable set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
  set enable_indexscan = on set enable_indexonlyscan = on set enable_tidscan = on set enable_nestloop = on
as $hathi$
#variable_conflict use_column
begin
  return query
  with recursive priorities as (
    (
      select job.priority, 1 as step
      from graphile_worker._private_jobs as job
      where job.task_id = task and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null
      order by job.priority
      limit 1
    )
    union all
    select (
      select job.priority
      from graphile_worker._private_jobs as job
      where job.task_id = task and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null
        and job.priority > priorities.priority
      order by job.priority
      limit 1
    ), priorities.step + 1
    from priorities
    where priorities.priority is not null and priorities.step < 100
  ), counted as (
    select job.run_at
    from graphile_worker._private_jobs as job
    where job.task_id = task and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null
    order by job.priority, job.run_at, job.id
    limit cap
  ), queued as (
    select job.run_at
    from graphile_worker._private_jobs as job
    where job.task_id = task and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is not null
    order by job.priority, job.run_at, job.id
    limit cap
  )
  select
    (select count(*) from counted where run_at <= now()) + (select count(*) from queued where run_at <= now()),
    (select count(*) from counted where run_at > now()) + (select count(*) from queued where run_at > now()),
    (select count(*) from counted) >= cap or (select count(*) from queued) >= cap,
    least((select min(run_at) from queued where run_at <= now()), (
      select min(first.run_at)
      from priorities
      cross join lateral (
        select job.run_at
        from graphile_worker._private_jobs as job
        where job.task_id = task and job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is null
          and job.priority = priorities.priority and job.run_at <= now()
        order by job.run_at
        limit 1
      ) as first
    ));
end;
$hathi$;

create or replace function graphile_worker._hathi_collect_rollup(cap integer, max_tasks integer, max_pages integer)
returns jsonb language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  -- Tasks share what may be counted of all.
  share constant integer := greatest(1, least(cap, greatest(cap / 20, cap * 10 / (
    select greatest(1, count(*)) from (select from graphile_worker._private_tasks limit max_tasks) as known
  )::integer)));
  job_table constant oid := (
    select class.oid
    from pg_class as class
    join pg_class as ours on ours.relnamespace = class.relnamespace
    where class.relname = '_private_jobs' and ours.oid = (select tableoid from graphile_worker._hathi_rollup)
  );
  pages constant double precision := greatest(1, pg_relation_size(job_table) / 8192);
  percent constant double precision := least(100, 100 * max_pages / pages);
  task record;
  found_jobs record;
  running_jobs jsonb;
  dead_jobs jsonb;
  is_indexed constant boolean := 2 = (
    select count(*) from pg_index as index
    join pg_class as class on class.oid = index.indexrelid
    where index.indrelid = job_table and index.indisvalid and class.relname in ('_hathi_jobs_running', '_hathi_jobs_dead')
  );
  is_sampled boolean := percent < 100;
  tasks jsonb := '[]';
begin
  -- A sample says little of what is rare. Where those jobs have indexes (src/db/statements/state-indexes.ts) they are counted, unless they are very many.
  if is_indexed and is_sampled then
    is_sampled := cap <= (
      select count(*) from (
        select from graphile_worker._private_jobs as job where job.locked_at is null and job.attempts >= job.max_attempts order by job.id limit cap
      ) as counted
    );
    select coalesce(jsonb_object_agg(by_task.task_id, by_task.jobs), '{}') into running_jobs
    from (
      select job.task_id, count(*) as jobs from graphile_worker._private_jobs as job where job.locked_at is not null group by job.task_id
    ) as by_task;
  end if;
  if is_indexed and not is_sampled and running_jobs is not null then
    select coalesce(jsonb_object_agg(by_task.task_id, by_task.jobs), '{}') into dead_jobs
    from (
      select job.task_id, count(*) as jobs
      from graphile_worker._private_jobs as job
      where job.locked_at is null and job.attempts >= job.max_attempts
      group by job.task_id
    ) as by_task;
  else
    select coalesce(running_jobs, jsonb_object_agg(by_task.task_id, by_task.running), '{}'), coalesce(jsonb_object_agg(by_task.task_id, by_task.dead), '{}')
    into running_jobs, dead_jobs
    from (
      select job.task_id,
        round(count(*) filter (where job.locked_at is not null) * 100 / percent) as running,
        round(count(*) filter (where job.locked_at is null and job.attempts >= job.max_attempts) * 100 / percent) as dead
      from graphile_worker._private_jobs as job tablesample system (percent)
      group by job.task_id
    ) as by_task;
  end if;

  -- Those with limits first: what waits for a limit is the sum over its tasks.
  for task in
    select known.id, known.identifier
    from graphile_worker._private_tasks as known
    left join graphile_worker._hathi_limited_tasks as member on member.task = known.identifier
    order by member.task is null, known.id
    limit max_tasks
  loop
    select * into found_jobs from graphile_worker._hathi_count_waiting(task.id, share);
    tasks := tasks || jsonb_build_array(jsonb_build_object(
      'task', task.identifier,
      'waiting', found_jobs.waiting,
      'scheduled', found_jobs.scheduled,
      'running', coalesce((running_jobs ->> task.id::text)::bigint, 0),
      'dead', coalesce((dead_jobs ->> task.id::text)::bigint, 0),
      -- There may be more than were counted.
      'isCapped', found_jobs.is_capped,
      'oldestSeconds', greatest(0, extract(epoch from now() - found_jobs.oldest))::float8
    ));
  end loop;

  return jsonb_build_object(
    'tasks', tasks,
    'limits', graphile_worker._hathi_collect_limits(tasks, cap),
    'isSampled', is_sampled,
    'holders', coalesce((select jsonb_agg(to_jsonb(holder)) from (select * from graphile_worker._hathi_vacuum_holders() limit 10) as holder), '[]'),
    'table', (
      select jsonb_build_object('live', n_live_tup, 'dead', n_dead_tup, 'bytes', pg_total_relation_size(relid))
      from pg_stat_all_tables where relid = job_table
    )
  );
end;
$hathi$;

-- Gives the figures, and collects them first if they are old and no other session does. `read_in_ms` says when the caller should ask again.
-- `to_report` are those that hold back vacuum for longer than `warn_after_s` and were not reported to any caller yet; where the time is not
-- known, a hundred transactions count as a second.
create or replace function graphile_worker._hathi_read_rollup(
  reader text, max_age_ms integer, warn_after_s double precision, cap integer, max_tasks integer, max_pages integer
)
returns table (data jsonb, age_ms double precision, read_in_ms double precision, to_report jsonb)
language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  rollup graphile_worker._hathi_rollup;
  readers integer;
  offending text[];
begin
  select * into rollup from graphile_worker._hathi_rollup;
  if current_setting('transaction_read_only')::boolean
    or has_table_privilege((select only_row.tableoid from graphile_worker._hathi_rollup as only_row), 'UPDATE') is not true
  then
    if rollup.due_at > now() then
      data := rollup.data;
      age_ms := extract(epoch from now() - rollup.refreshed_at) * 1000;
    else
      data := graphile_worker._hathi_collect_rollup(cap, max_tasks, max_pages);
      age_ms := 0;
    end if;
    read_in_ms := max_age_ms;
    to_report := '[]';
    return next;
    return;
  end if;

  insert into graphile_worker._hathi_rollup_readers as known (reader, read_at) values (_hathi_read_rollup.reader, now())
  on conflict on constraint _hathi_rollup_readers_pkey do update set read_at = now();
  select count(*) into readers from graphile_worker._hathi_rollup_readers as known where known.read_at > now() - interval '10 minutes';

  select * into rollup from graphile_worker._hathi_rollup as only_row where only_row.due_at <= now() for update skip locked;
  if found then
    delete from graphile_worker._hathi_rollup_readers as known where known.read_at <= now() - interval '10 minutes';
    rollup.data := graphile_worker._hathi_collect_rollup(cap, max_tasks, max_pages);
    select coalesce(jsonb_agg(holder), '[]'), array_agg(holder ->> 'what') into to_report, offending
    from jsonb_array_elements(rollup.data -> 'holders') as holder
    where coalesce((holder ->> 'seconds')::float8, (holder ->> 'transactions')::float8 / 100) >= warn_after_s;
    select coalesce(jsonb_agg(holder), '[]') into to_report
    from jsonb_array_elements(to_report) as holder
    where (holder ->> 'what') <> all (rollup.warned);
    update graphile_worker._hathi_rollup as only_row
    set data = rollup.data, refreshes = only_row.refreshes + 1, warned = coalesce(offending, '{}'), refreshed_at = now(),
      due_at = now() + greatest(max_age_ms * interval '1 millisecond', 100 * (clock_timestamp() - now()));
    rollup.refreshed_at := now();
  else
    select * into rollup from graphile_worker._hathi_rollup;
    to_report := '[]';
  end if;

  data := rollup.data;
  age_ms := extract(epoch from now() - rollup.refreshed_at) * 1000;
  read_in_ms := greatest(max_age_ms, readers * 1000);
  return next;
end;
$hathi$;

-- How long jobs waited and ran, by task: counts in bins whose upper ends grow by the square root of 2 from 1 ms (src/util/log-bins.ts). Minutes
-- become hours after three hours, hours become days after three days, and days are kept for ninety.
create table graphile_worker._hathi_job_times (
  period text not null constraint _hathi_job_times_period_check check (period in ('minute', 'hour', 'day')),
  starts_at timestamptz not null,
  task text not null,
  waits bigint[] not null,
  runs bigint[] not null,
  succeeded bigint not null,
  -- Attempts, those among them that were the last.
  failed bigint not null,
  permanently_failed bigint not null,
  constraint _hathi_job_times_pkey primary key (period, starts_at, task)
);
alter table graphile_worker._hathi_job_times enable row level security;

create or replace function graphile_worker._hathi_add_bins(a bigint[], b bigint[])
returns bigint[] language sql immutable set search_path = pg_catalog, pg_temp as $hathi$
  select array_agg(coalesce(pair.a, 0) + coalesce(pair.b, 0) order by pair.n)
  from unnest(a, b) with ordinality as pair (a, b, n);
$hathi$;

create or replace function graphile_worker._hathi_add_times(times graphile_worker._hathi_job_times[])
returns void language sql volatile set search_path = pg_catalog, pg_temp as $hathi$
  insert into graphile_worker._hathi_job_times as known
  select added.* from unnest(times) as added
  -- All sessions lock rows in this order.
  order by added.period, added.starts_at, added.task
  on conflict on constraint _hathi_job_times_pkey do update set
    waits = graphile_worker._hathi_add_bins(known.waits, excluded.waits),
    runs = graphile_worker._hathi_add_bins(known.runs, excluded.runs),
    succeeded = known.succeeded + excluded.succeeded,
    failed = known.failed + excluded.failed,
    permanently_failed = known.permanently_failed + excluded.permanently_failed;
$hathi$;

-- Makes rows of the next longer period from those that are old enough, a thousand at most.
create or replace function graphile_worker._hathi_condense_times(from_period text, to_period text, keep interval)
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
declare
  old graphile_worker._hathi_job_times;
begin
  for old in
    select times.* from graphile_worker._hathi_job_times as times
    where times.period = from_period and times.starts_at < date_trunc(to_period, now() - keep, 'UTC')
    order by times.period, times.starts_at, times.task
    limit 1000
  loop
    delete from graphile_worker._hathi_job_times as times
    where times.period = old.period and times.starts_at = old.starts_at and times.task = old.task;
    old.period := to_period;
    old.starts_at := date_trunc(to_period, old.starts_at, 'UTC');
    perform graphile_worker._hathi_add_times(array[old]);
  end loop;
end;
$hathi$;

-- Adds what a pool has counted since it last did so, as JSON rows.
create or replace function graphile_worker._hathi_record_times(counted jsonb)
returns void language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
begin
  perform graphile_worker._hathi_add_times((
    select array_agg(row(
      'minute', date_trunc('minute', now(), 'UTC'), each.task, each.waits, each.runs, each.succeeded, each.failed, each.permanently_failed
    )::graphile_worker._hathi_job_times)
    from jsonb_to_recordset(counted) as each (
      task text, waits bigint[], runs bigint[], succeeded bigint, failed bigint, permanently_failed bigint
    )
  ));
  -- One at a time: two would wait for each other's rows.
  perform from graphile_worker._hathi_rollup for update skip locked;
  if not found then
    return;
  end if;
  perform graphile_worker._hathi_condense_times('minute', 'hour', interval '3 hours');
  perform graphile_worker._hathi_condense_times('hour', 'day', interval '3 days');
  delete from graphile_worker._hathi_job_times as times
  where times.period = 'day' and times.starts_at < now() - interval '90 days';
end;
$hathi$;
