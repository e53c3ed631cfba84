-- Where the migrations lead. Made by a test, for people to read; to change the schema, write a migration.
-- Rows in use: migrations has Graphile Worker's ids 1 to 20, _hathi_migrations has ours.

-- Tables

create table graphile_worker._hathi_add_guards (
  task_identifier text not null,
  kind text not null,
  key text not null,
  job_id bigint,
  running_id bigint,
  since timestamp with time zone not null,
  until timestamp with time zone not null default 'infinity'::timestamp with time zone,
  expires_at timestamp with time zone not null,
  constraint _hathi_add_guards_kind_check CHECK ((kind = ANY (ARRAY['debounce'::text, 'throttle'::text, 'singleton'::text]))),
  constraint _hathi_add_guards_pkey PRIMARY KEY (task_identifier, kind, key)
);
alter table graphile_worker._hathi_add_guards enable row level security;

create table graphile_worker._hathi_announced_migrations (
  id integer not null,
  announced_at timestamp with time zone not null default now(),
  constraint _hathi_announced_migrations_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_announced_migrations enable row level security;

create table graphile_worker._hathi_audit (
  id bigint not null generated always as identity (sequence name graphile_worker._hathi_audit_id_seq),
  started_at timestamp with time zone not null default now(),
  done_by text,
  action text not null,
  target jsonb not null,
  matched bigint not null default 0,
  changed bigint not null default 0,
  reported_at timestamp with time zone not null default now(),
  finished_at timestamp with time zone,
  outcome text,
  message text,
  stop_asked_by text,
  constraint _hathi_audit_outcome_check CHECK ((outcome = ANY (ARRAY['done'::text, 'stopped'::text, 'failed'::text]))),
  constraint _hathi_audit_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_audit enable row level security;

create table graphile_worker._hathi_cron_jobs (
  identifier text not null,
  job_id bigint not null,
  constraint _hathi_cron_jobs_pkey PRIMARY KEY (identifier)
);
alter table graphile_worker._hathi_cron_jobs enable row level security;

create table graphile_worker._hathi_error_groups (
  expires_on date not null,
  fingerprint text not null,
  slot smallint not null,
  task_identifier text not null,
  error_class text not null,
  failures bigint not null,
  first_at timestamp with time zone not null,
  last_at timestamp with time zone not null,
  constraint _hathi_error_groups_pkey PRIMARY KEY (expires_on, fingerprint, slot)
);
alter table graphile_worker._hathi_error_groups enable row level security;

create table graphile_worker._hathi_former_workers (
  id text not null,
  left_at timestamp with time zone not null default now(),
  is_dead boolean not null default false,
  constraint _hathi_former_workers_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_former_workers enable row level security;

create table graphile_worker._hathi_history_attempts (
  expires_on date not null,
  settled_at timestamp with time zone not null,
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
  created_at timestamp with time zone not null,
  error text,
  error_class text,
  fingerprint text,
  stack text,
  payload json,
  result json
) partition by RANGE (expires_on);
alter table graphile_worker._hathi_history_attempts enable row level security;

create table graphile_worker._hathi_history_batches (
  expires_on date not null,
  settled_at timestamp with time zone not null,
  entry bigint not null,
  task_identifier text not null,
  worker_id text not null,
  first_id bigint not null,
  last_id bigint not null,
  job_ids bigint[] not null,
  attempts smallint[],
  wait_ms integer[] not null,
  run_ms integer[] not null,
  queue_names text[],
  keys text[]
) partition by RANGE (expires_on);
alter table graphile_worker._hathi_history_batches enable row level security;

create table graphile_worker._hathi_job_cancellations (
  job_id bigint not null,
  task_identifier text,
  reason text,
  cancelled_by text,
  cancelled_at timestamp with time zone not null default now(),
  attempt integer,
  outcome text,
  settled_at timestamp with time zone,
  constraint _hathi_job_cancellations_outcome_check CHECK ((outcome = ANY (ARRAY['cancelled'::text, 'ended'::text]))),
  constraint _hathi_job_cancellations_pkey PRIMARY KEY (job_id)
);
alter table graphile_worker._hathi_job_cancellations enable row level security;

create table graphile_worker._hathi_job_crashes (
  job_id bigint not null,
  attempt smallint not null,
  crashes integer not null,
  deaths integer not null,
  since timestamp with time zone not null,
  release_at timestamp with time zone not null,
  constraint _hathi_job_crashes_pkey PRIMARY KEY (job_id)
);
alter table graphile_worker._hathi_job_crashes enable row level security;

create table graphile_worker._hathi_job_links (
  expires_on date not null,
  first_parent bigint not null,
  last_parent bigint not null,
  parent_ids bigint[] not null,
  first_child bigint not null,
  last_child bigint not null,
  child_ids bigint[] not null
) partition by RANGE (expires_on);
alter table graphile_worker._hathi_job_links enable row level security;

create table graphile_worker._hathi_job_overruns (
  job_id bigint not null,
  worker_id text not null,
  attempt integer not null,
  task_identifier text not null,
  timeout_ms double precision not null,
  started_at timestamp with time zone not null,
  overran_at timestamp with time zone not null default now(),
  constraint _hathi_job_overruns_pkey PRIMARY KEY (job_id, worker_id, attempt)
);
alter table graphile_worker._hathi_job_overruns enable row level security;

create table graphile_worker._hathi_job_progress (
  job_id bigint not null,
  done double precision not null,
  total double precision,
  note text,
  attempt integer not null,
  reported_at timestamp with time zone not null,
  constraint _hathi_job_progress_pkey PRIMARY KEY (job_id)
);
alter table graphile_worker._hathi_job_progress enable row level security;

create table graphile_worker._hathi_job_snoozes (
  job_id bigint not null,
  snoozes integer not null,
  snoozed_at timestamp with time zone not null default now(),
  token text not null,
  constraint _hathi_job_snoozes_pkey PRIMARY KEY (job_id)
);
alter table graphile_worker._hathi_job_snoozes enable row level security;

create table graphile_worker._hathi_job_times (
  period text not null,
  starts_at timestamp with time zone not null,
  task text not null,
  waits bigint[] not null,
  runs bigint[] not null,
  succeeded bigint not null,
  failed bigint not null,
  permanently_failed bigint not null,
  constraint _hathi_job_times_period_check CHECK ((period = ANY (ARRAY['minute'::text, 'hour'::text, 'day'::text]))),
  constraint _hathi_job_times_pkey PRIMARY KEY (period, starts_at, task)
);
alter table graphile_worker._hathi_job_times enable row level security;

create table graphile_worker._hathi_limit_holds (
  limit_id integer not null,
  key text not null,
  until timestamp with time zone not null,
  reason text,
  constraint _hathi_limit_holds_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES graphile_worker._hathi_limits(id) ON DELETE CASCADE,
  constraint _hathi_limit_holds_pkey PRIMARY KEY (limit_id, key)
);
alter table graphile_worker._hathi_limit_holds enable row level security;

create table graphile_worker._hathi_limit_overrides (
  limit_id integer not null,
  key text not null,
  places integer,
  period_ms double precision,
  burst integer,
  weight integer,
  set_at timestamp with time zone not null default now(),
  set_by text,
  constraint _hathi_limit_overrides_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES graphile_worker._hathi_limits(id) ON DELETE CASCADE,
  constraint _hathi_limit_overrides_pkey PRIMARY KEY (limit_id, key)
);
alter table graphile_worker._hathi_limit_overrides enable row level security;

create table graphile_worker._hathi_limit_rates (
  limit_id integer not null,
  key text not null,
  tat timestamp with time zone not null,
  free_at timestamp with time zone not null,
  late_until timestamp with time zone,
  spare integer not null default 0,
  spare_until timestamp with time zone,
  constraint _hathi_limit_rates_limit_id_fkey FOREIGN KEY (limit_id) REFERENCES graphile_worker._hathi_limits(id) ON DELETE CASCADE,
  constraint _hathi_limit_rates_pkey PRIMARY KEY (limit_id, key)
);
alter table graphile_worker._hathi_limit_rates enable row level security;

create table graphile_worker._hathi_limited_tasks (
  task text not null,
  limit_ids integer[] not null,
  since timestamp with time zone not null default clock_timestamp(),
  constraint _hathi_limited_tasks_pkey PRIMARY KEY (task)
);
alter table graphile_worker._hathi_limited_tasks enable row level security;

create table graphile_worker._hathi_limits (
  id integer not null generated always as identity (sequence name graphile_worker._hathi_limits_id_seq),
  scope text not null,
  name text not null,
  kind text not null,
  path text[] not null default '{}'::text[],
  places integer,
  period_ms double precision,
  burst integer not null default 0,
  weight integer not null default 1,
  weight_path text[],
  cost integer not null default 1,
  cost_path text[],
  origin text not null default 'code'::text,
  declared_at timestamp with time zone not null default now(),
  declared_by text,
  claims integer not null default 0,
  constraint _hathi_limits_kind_check CHECK ((kind = ANY (ARRAY['concurrency'::text, 'rate'::text, 'fair'::text]))),
  constraint _hathi_limits_name_key UNIQUE (scope, name, kind, path),
  constraint _hathi_limits_origin_check CHECK ((origin = ANY (ARRAY['code'::text, 'set'::text]))),
  constraint _hathi_limits_pkey PRIMARY KEY (id),
  constraint _hathi_limits_scope_check CHECK ((scope = ANY (ARRAY['task'::text, 'shared'::text])))
);
alter table graphile_worker._hathi_limits enable row level security;

create table graphile_worker._hathi_migrations (
  id integer not null,
  name text not null,
  ts timestamp with time zone not null default now(),
  constraint _hathi_migrations_pkey PRIMARY KEY (id)
);

create table graphile_worker._hathi_pauses (
  kind text not null,
  name text not null,
  paused_at timestamp with time zone not null default now(),
  until timestamp with time zone not null default 'infinity'::timestamp with time zone,
  reason text,
  paused_by text,
  constraint _hathi_pauses_kind_check CHECK ((kind = ANY (ARRAY['task'::text, 'queue'::text, 'worker'::text, 'cron'::text, 'all'::text]))),
  constraint _hathi_pauses_pkey PRIMARY KEY (kind, name)
);
alter table graphile_worker._hathi_pauses enable row level security;

create table graphile_worker._hathi_rollup (
  id boolean not null default true,
  refreshed_at timestamp with time zone,
  due_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  refreshes bigint not null default 0,
  data jsonb not null default '{}'::jsonb,
  warned text[] not null default '{}'::text[],
  constraint _hathi_rollup_only_row CHECK (id),
  constraint _hathi_rollup_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_rollup enable row level security;

create table graphile_worker._hathi_rollup_readers (
  reader text not null,
  read_at timestamp with time zone not null,
  constraint _hathi_rollup_readers_pkey PRIMARY KEY (reader)
);
alter table graphile_worker._hathi_rollup_readers enable row level security;

create table graphile_worker._hathi_sweeps (
  id boolean not null default true,
  swept_at timestamp with time zone not null,
  constraint _hathi_sweeps_id_check CHECK (id),
  constraint _hathi_sweeps_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_sweeps enable row level security;

create table graphile_worker._hathi_worker_lines (
  id text not null,
  key bigint not null,
  lost_at timestamp with time zone,
  constraint _hathi_worker_lines_id_fkey FOREIGN KEY (id) REFERENCES graphile_worker._private_workers(id) ON DELETE CASCADE,
  constraint _hathi_worker_lines_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_worker_lines enable row level security;

create table graphile_worker._private_job_queues (
  id integer not null generated always as identity (sequence name graphile_worker.job_queues_id_seq),
  queue_name text not null,
  locked_at timestamp with time zone,
  locked_by text,
  is_available boolean not null generated always as (locked_at IS NULL) stored,
  constraint job_queues_pkey1 PRIMARY KEY (id),
  constraint job_queues_queue_name_check CHECK ((length(queue_name) <= 128)),
  constraint job_queues_queue_name_key UNIQUE (queue_name)
);
alter table graphile_worker._private_job_queues enable row level security;

create table graphile_worker._private_job_retirements (
  id bigint not null,
  constraint _private_job_retirements_pkey PRIMARY KEY (id)
);
alter table graphile_worker._private_job_retirements enable row level security;

create table graphile_worker._private_jobs (
  id bigint not null generated always as identity (sequence name graphile_worker.jobs_id_seq1),
  job_queue_id integer,
  task_id integer not null,
  payload json not null default '{}'::json,
  priority smallint not null default 0,
  run_at timestamp with time zone not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25,
  last_error text,
  created_at timestamp with time zone not null default now(),
  updated_at timestamp with time zone not null default now(),
  key text,
  locked_at timestamp with time zone,
  locked_by text,
  revision integer not null default 0,
  flags jsonb,
  is_available boolean not null generated always as ((locked_at IS NULL) AND (attempts < max_attempts)) stored,
  constraint jobs_key_check CHECK (((length(key) > 0) AND (length(key) <= 512))),
  constraint jobs_key_key1 UNIQUE (key),
  constraint jobs_max_attempts_check CHECK ((max_attempts >= 1)),
  constraint jobs_pkey1 PRIMARY KEY (id)
);
alter table graphile_worker._private_jobs enable row level security;

create table graphile_worker._private_known_crontabs (
  identifier text not null,
  known_since timestamp with time zone not null,
  last_execution timestamp with time zone,
  constraint known_crontabs_pkey PRIMARY KEY (identifier)
);
alter table graphile_worker._private_known_crontabs enable row level security;

create table graphile_worker._private_tasks (
  id integer not null generated always as identity (sequence name graphile_worker.tasks_id_seq),
  identifier text not null,
  constraint tasks_identifier_check CHECK ((length(identifier) <= 128)),
  constraint tasks_identifier_key UNIQUE (identifier),
  constraint tasks_pkey PRIMARY KEY (id)
);
alter table graphile_worker._private_tasks enable row level security;

create table graphile_worker._private_workers (
  id text not null,
  last_heartbeat_at timestamp with time zone not null,
  started_at timestamp with time zone not null default now(),
  metadata jsonb,
  constraint _private_workers_pkey PRIMARY KEY (id)
);
alter table graphile_worker._private_workers enable row level security;

create table graphile_worker.migrations (
  id integer not null,
  ts timestamp with time zone not null default now(),
  breaking boolean not null default false,
  constraint migrations_pkey PRIMARY KEY (id)
);

-- Indexes

CREATE INDEX _hathi_add_guards_by_expiry_idx ON graphile_worker._hathi_add_guards USING btree (expires_at);

CREATE INDEX _hathi_audit_by_action ON graphile_worker._hathi_audit USING btree (action, id);

CREATE INDEX _hathi_audit_by_person ON graphile_worker._hathi_audit USING btree (done_by, id);

CREATE INDEX _hathi_history_attempts_by_fingerprint ON ONLY graphile_worker._hathi_history_attempts USING btree (fingerprint, settled_at) INCLUDE (job_id, outcome) WHERE (fingerprint IS NOT NULL);

CREATE INDEX _hathi_history_attempts_by_id ON ONLY graphile_worker._hathi_history_attempts USING btree (job_id);

CREATE INDEX _hathi_history_attempts_by_key ON ONLY graphile_worker._hathi_history_attempts USING btree (key, settled_at, entry) WHERE (key IS NOT NULL);

CREATE INDEX _hathi_history_attempts_by_outcome ON ONLY graphile_worker._hathi_history_attempts USING btree (outcome, settled_at, entry);

CREATE INDEX _hathi_history_attempts_by_queue ON ONLY graphile_worker._hathi_history_attempts USING btree (queue_name, settled_at, entry) WHERE (queue_name IS NOT NULL);

CREATE INDEX _hathi_history_attempts_by_task ON ONLY graphile_worker._hathi_history_attempts USING btree (task_identifier, outcome, settled_at, entry);

CREATE INDEX _hathi_history_batches_by_id ON ONLY graphile_worker._hathi_history_batches USING btree (((first_id >> 12)), first_id, last_id);

CREATE INDEX _hathi_history_batches_by_key ON ONLY graphile_worker._hathi_history_batches USING gin (keys) WHERE (keys IS NOT NULL);

CREATE INDEX _hathi_history_batches_by_queue ON ONLY graphile_worker._hathi_history_batches USING gin (queue_names) WHERE (queue_names IS NOT NULL);

CREATE INDEX _hathi_history_batches_by_task ON ONLY graphile_worker._hathi_history_batches USING btree (task_identifier, settled_at, entry);

CREATE INDEX _hathi_history_batches_by_time ON ONLY graphile_worker._hathi_history_batches USING btree (settled_at, entry);

CREATE INDEX _hathi_job_cancellations_by_time_idx ON graphile_worker._hathi_job_cancellations USING btree (cancelled_at);

CREATE INDEX _hathi_job_cancellations_open_idx ON graphile_worker._hathi_job_cancellations USING btree (job_id) WHERE (outcome IS NULL);

CREATE INDEX _hathi_job_links_by_child ON ONLY graphile_worker._hathi_job_links USING btree (((first_child >> 12)), first_child, last_child);

CREATE INDEX _hathi_job_links_by_parent ON ONLY graphile_worker._hathi_job_links USING btree (((first_parent >> 12)), first_parent, last_parent);

CREATE INDEX _hathi_jobs_by_queue ON graphile_worker._private_jobs USING btree (task_id, job_queue_id, priority, run_at, id) WHERE (is_available AND (job_queue_id IS NOT NULL));

CREATE INDEX _hathi_jobs_by_task ON graphile_worker._private_jobs USING btree (task_id, priority, run_at, id) WHERE ((locked_at IS NULL) AND (attempts < max_attempts) AND (job_queue_id IS NULL));

CREATE INDEX _hathi_jobs_in_queues ON graphile_worker._private_jobs USING btree (task_id, priority, run_at, id) WHERE ((locked_at IS NULL) AND (attempts < max_attempts) AND (job_queue_id IS NOT NULL));

CREATE INDEX _hathi_limit_rates_by_tat ON graphile_worker._hathi_limit_rates USING btree (limit_id, tat);

CREATE INDEX _private_workers_last_heartbeat_at_idx ON graphile_worker._private_workers USING btree (last_heartbeat_at);

CREATE INDEX jobs_main_index ON graphile_worker._private_jobs USING btree (priority, run_at) INCLUDE (id, task_id, job_queue_id) WHERE (is_available = true);

CREATE INDEX jobs_no_queue_index ON graphile_worker._private_jobs USING btree (priority, run_at) INCLUDE (id, task_id) WHERE ((is_available = true) AND (job_queue_id IS NULL));

-- Types

create type graphile_worker._hathi_guarded_spec as (
  identifier text,
  payload json,
  queue_name text,
  run_at timestamp with time zone,
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

create type graphile_worker.job_spec as (
  identifier text,
  payload json,
  queue_name text,
  run_at timestamp with time zone,
  max_attempts smallint,
  job_key text,
  priority smallint,
  flags text[]
);

-- Views

create view graphile_worker.jobs as
 SELECT jobs.id,
    job_queues.queue_name,
    tasks.identifier AS task_identifier,
    jobs.priority,
    jobs.run_at,
    jobs.attempts,
    jobs.max_attempts,
    jobs.last_error,
    jobs.created_at,
    jobs.updated_at,
    jobs.key,
    jobs.locked_at,
    jobs.locked_by,
    jobs.revision,
    jobs.flags
   FROM ((graphile_worker._private_jobs jobs
     JOIN graphile_worker._private_tasks tasks ON ((tasks.id = jobs.task_id)))
     LEFT JOIN graphile_worker._private_job_queues job_queues ON ((job_queues.id = jobs.job_queue_id)));

-- Functions

create function graphile_worker._hathi_add_bins(a bigint[], b bigint[])
 RETURNS bigint[]
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select array_agg(coalesce(pair.a, 0) + coalesce(pair.b, 0) order by pair.n)
  from unnest(a, b) with ordinality as pair (a, b, n);
$hathi$;

create function graphile_worker._hathi_add_checked(spec graphile_worker._hathi_guarded_spec)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_add_cron_job(entry text, may_overlap boolean, task text, payload json, queue_name text, run_at timestamp with time zone, max_attempts integer, job_key text, priority integer, flags text[], job_key_mode text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_add_guarded(specs graphile_worker._hathi_guarded_spec[], clock timestamp with time zone)
 RETURNS TABLE(job graphile_worker._private_jobs, skipped text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_add_jobs(task_names text[], job_tasks integer[], queue_names text[], job_queues integer[], payloads text[], run_ats timestamp with time zone[], max_attempts smallint[], priorities smallint[], flags text[], OUT ids text, OUT task_ids integer[], OUT queue_ids integer[], OUT added_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_add_specs(specs graphile_worker.job_spec[], preserving_keys text[])
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_add_times(times graphile_worker._hathi_job_times[])
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_admit_jobs(limit_ids integer[], rows tid[], queue_ids integer[], most integer, moment timestamp with time zone, horizon timestamp with time zone, late_ms double precision, OUT admitted integer[], OUT counts integer[], OUT start_ats timestamp with time zone[], OUT steps double precision[], OUT slacks double precision[], OUT release_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  late constant interval := late_ms * interval '1 millisecond';
  bound record;
  b_id integer[] := '{}';
  b_kind text[] := '{}';
  b_path text[] := '{}';
  b_places integer[] := '{}';
  b_period double precision[] := '{}';
  b_burst integer[] := '{}';
  b_cost integer[] := '{}';
  b_cost_path text[] := '{}';
  b_tasks text[] := '{}';
  -- What is left of each limit and key that was met.
  s_name text[] := '{}';
  s_bound integer[] := '{}';
  s_key text[] := '{}';
  s_free integer[] := '{}';
  s_tat timestamptz[] := '{}';
  s_late timestamptz[] := '{}';
  s_places integer[] := '{}';
  s_window double precision[] := '{}';
  s_burst integer[] := '{}';
  s_slack double precision[] := '{}';
  s_spare integer[] := '{}';
  s_spare_until timestamptz[] := '{}';
  s_spent boolean[] := '{}';
  own record;
  job_payload json;
  refused_queues integer[] := '{}';
  state integer;
  met integer[];
  costs integer[];
  met_steps double precision[];
  met_spares integer[];
  start_at timestamptz;
  free_at timestamptz;
  slack double precision;
  step double precision;
  spare integer;
  is_admitted boolean;
  is_whole boolean;
  cost integer;
  name text;
  wanted_key text;
  base timestamptz;
  total integer := 0;
  at_once integer;
  grace double precision;
begin
  admitted := '{}';
  counts := '{}';
  start_ats := '{}';
  steps := '{}';
  slacks := '{}';
  for bound in
    select l.id, l.kind, l.path, coalesce(o.places, l.places) as places, coalesce(o.period_ms, l.period_ms) as period_ms,
      coalesce(o.burst, l.burst) as burst, l.cost, l.cost_path,
      case when l.kind = 'concurrency' then array(
        select task.id from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._private_tasks as task on task.identifier = member.task
        where l.id = any (member.limit_ids)
      ) end as tasks
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (limit_ids)
    order by l.id
  loop
    b_id := b_id || bound.id;
    b_kind := b_kind || bound.kind;
    b_path := b_path || bound.path::text;
    b_places := b_places || bound.places;
    b_period := b_period || bound.period_ms;
    b_burst := b_burst || bound.burst;
    b_cost := b_cost || bound.cost;
    b_cost_path := b_cost_path || bound.cost_path::text;
    b_tasks := b_tasks || bound.tasks::text;
  end loop;

  <<jobs>>
  for nth in 1 .. cardinality(rows) loop
    exit when total >= most;
    continue when queue_ids[nth] = any (refused_queues);
    met := '{}';
    costs := '{}';
    met_steps := '{}';
    met_spares := '{}';
    start_at := moment;
    slack := null;
    is_admitted := true;
    is_whole := false;
    job_payload := null;
    for b in 1 .. cardinality(b_id) loop
      if job_payload is null and (b_path[b] <> '{}' or b_cost_path[b] is not null) then
        select job.payload into job_payload from graphile_worker._private_jobs as job where job.ctid = rows[nth];
      end if;
      wanted_key := case
        when b_path[b] = '{}' then '*'
        else graphile_worker._hathi_limit_key(job_payload, b_path[b]::text[])
      end;
      name := b || wanted_key;
      state := array_position(s_name, name);
      if state is null then
        select o.places, o.period_ms, o.burst, r.tat, r.spare, r.spare_until,
          case when r.late_until <= horizon + interval '5 seconds' then r.late_until end as late_until, (
            select h.until from graphile_worker._hathi_limit_holds as h
            where h.limit_id = b_id[b] and h.key = wanted_key and h.until > moment
          ) as held_until
        into own
        from (select 1) as one
        left join graphile_worker._hathi_limit_rates as r on r.limit_id = b_id[b] and r.key = wanted_key
        left join graphile_worker._hathi_limit_overrides as o
          on o.limit_id = b_id[b] and o.key = wanted_key and wanted_key <> '*';
        s_name := s_name || name;
        s_bound := s_bound || b;
        s_key := s_key || wanted_key;
        s_free := s_free || case
          when own.held_until is not null then 0
          when b_kind[b] = 'concurrency'
            then coalesce(own.places, b_places[b])
              - graphile_worker._hathi_count_locked(b_tasks[b]::integer[], b_path[b]::text[], wanted_key)
        end;
        s_places := s_places || case when b_kind[b] = 'rate' then coalesce(own.places, b_places[b]) end;
        s_slack := s_slack || graphile_worker._hathi_rate_slack(coalesce(own.period_ms, b_period[b]));
        state := cardinality(s_name);
        s_window := s_window || coalesce(own.period_ms, b_period[b]) + s_slack[state];
        s_burst := s_burst || coalesce(own.burst, b_burst[b]);
        -- A time further ahead than any claim could have made it is from before the server's clock was set back, or the rate was raised.
        s_spare_until := s_spare_until || case
          when own.spare_until between moment and horizon + (2 * s_window[state] + 5000) * interval '1 millisecond' then own.spare_until
        end;
        s_spare := s_spare || case when s_spare_until[state] is null then 0 else least(own.spare, s_places[state] / 4) end;
        s_tat := s_tat || least(
          coalesce(own.tat, '-infinity'),
          greatest(horizon, own.late_until)
            + s_window[state] / nullif(s_places[state] - s_places[state] / 4, 0) * interval '1 millisecond' * greatest(
              s_burst[state] + 1, least(b_places[b], case when b_cost_path[b] is null then b_cost[b] end)
            )
        );
        s_late := s_late || own.late_until;
        s_spent := s_spent || coalesce(own.tat > s_tat[state], false);
        release_at := least(release_at, own.held_until);
      end if;
      if s_free[state] <= 0 then
        is_admitted := false;
        is_whole := is_whole or b_path[b] = '{}';
        exit;
      end if;
      cost := 1;
      spare := 0;
      step := null;
      if b_kind[b] = 'rate' then
        if s_places[state] <= 0 then
          is_admitted := false;
          is_whole := is_whole or b_path[b] = '{}';
          exit;
        end if;
        cost := least(
          coalesce(b_places[b], 1),
          case
            when b_cost_path[b] is null then b_cost[b]
            else graphile_worker._hathi_limit_number(job_payload, b_cost_path[b]::text[], 1000000)
          end
        );
        spare := greatest(s_spare[state], least(cost - 1 - s_burst[state], s_places[state] / 4));
        step := s_window[state] / (s_places[state] - spare);

        if nth = 1 and cardinality(b_id) = 1 and b_path[b] = '{}' and b_cost_path[b] is null
          and queue_ids is null
          and spare = 0 and cost - 1 <= s_burst[state] then
          -- One rate, and all jobs alike: their times are known without looking at them.
          base := greatest(s_tat[state], moment);
          at_once := least(cardinality(rows), most);
          grace := graphile_worker._hathi_rate_grace(
            s_burst[state], step, at_once::double precision * cost, date_part('epoch', base - moment) * 1000
          );
          if grace >= late_ms then
            admitted := array(select generate_series(1, at_once));
            counts := array[at_once];
            start_ats := array[moment];
            steps := array[0];
            slacks := array[s_slack[state] + grace - late_ms];
            s_tat[state] := greatest(base, moment + grace * interval '1 millisecond')
              + at_once::double precision * cost * step * interval '1 millisecond';
            s_spent[state] := true;
            exit jobs;
          elsif late_ms = 0 then
            total := floor(least(1e6, (date_part('epoch', horizon - base) * 1000 / step + 1 + s_burst[state]) / cost));
            at_once := floor(least(1e6, (date_part('epoch', moment - base) * 1000 / step + 1 + s_burst[state]) / cost));
            total := greatest(0, least(total, cardinality(rows), most));
            at_once := greatest(0, least(at_once, total));
            if total < cardinality(rows) then
              release_at := base + ((total + 1)::double precision * cost - 1 - s_burst[state]) * step * interval '1 millisecond';
            end if;
            admitted := array(select generate_series(1, total));
            if at_once > 0 then
              counts := counts || at_once;
              start_ats := start_ats || moment;
              steps := steps || 0::double precision;
              slacks := slacks || s_slack[state];
            end if;
            if total > at_once then
              counts := counts || (total - at_once);
              start_ats := start_ats || base + ((at_once + 1)::double precision * cost - 1 - s_burst[state]) * step * interval '1 millisecond';
              steps := steps || cost * step;
              slacks := slacks || s_slack[state];
            end if;
            if total > 0 then
              s_tat[state] := base + total::double precision * cost * step * interval '1 millisecond';
              s_spent[state] := true;
            end if;
            exit jobs;
          end if;
        end if;

        free_at := case
          when s_tat[state] = '-infinity' then moment
          else s_tat[state] + (cost - 1 - s_burst[state]) * step * interval '1 millisecond'
        end;
        start_at := greatest(start_at, free_at);
        slack := least(slack, s_slack[state]);
        if free_at > horizon then
          release_at := least(release_at, free_at);
          is_admitted := false;
          is_whole := is_whole or b_path[b] = '{}';
          exit;
        end if;
      end if;
      met := met || state;
      costs := costs || cost;
      met_steps := met_steps || step;
      met_spares := met_spares || spare;
    end loop;
    if not is_admitted then
      -- What is used up as a whole admits no other job either.
      exit when is_whole;
      refused_queues := refused_queues || queue_ids[nth];
      continue;
    end if;
    for m in 1 .. cardinality(met) loop
      state := met[m];
      s_free[state] := s_free[state] - 1;
      if met_steps[m] is not null then
        -- What a job costs beyond the burst is waited for before it starts, and what `spare` does not cover once more after it.
        s_tat[state] := greatest(
          s_tat[state], start_at + late - greatest(0, costs[m] - 1 - s_burst[state]) * met_steps[m] * interval '1 millisecond'
        ) + (costs[m] + greatest(0, costs[m] - 1 - s_burst[state] - met_spares[m])) * met_steps[m] * interval '1 millisecond';
        if costs[m] - 1 > s_burst[state] then
          s_spare[state] := met_spares[m];
          s_spare_until[state] := greatest(
            s_spare_until[state], start_at + late + (s_window[state] + s_slack[state]) * interval '1 millisecond'
          );
        end if;
        s_spent[state] := true;
        if late > interval '0' then
          s_late[state] := greatest(s_late[state], start_at + late);
        end if;
      end if;
    end loop;
    admitted := admitted || nth;
    total := total + 1;
    start_at := case when slack is not null then start_at end;
    if counts <> '{}' and start_ats[cardinality(counts)] is not distinct from start_at
      and slacks[cardinality(counts)] is not distinct from slack then
      counts[cardinality(counts)] := counts[cardinality(counts)] + 1;
    else
      counts := counts || 1;
      start_ats := start_ats || start_at;
      steps := steps || 0::double precision;
      slacks := slacks || slack;
    end if;
  end loop jobs;

  insert into graphile_worker._hathi_limit_rates as rate (limit_id, key, tat, free_at, late_until, spare, spare_until)
  select b_id[s_bound[nth]], s_key[nth], s_tat[nth],
    s_tat[nth] - s_burst[nth] * s_window[nth] / (s_places[nth] - s_spare[nth]) * interval '1 millisecond', s_late[nth], s_spare[nth], s_spare_until[nth]
  from generate_series(1, cardinality(s_name)) as nth
  where s_spent[nth]
  order by 1, 2
  on conflict (limit_id, key) do update set
    tat = excluded.tat, free_at = excluded.free_at, late_until = excluded.late_until, spare = excluded.spare, spare_until = excluded.spare_until;
end;
$hathi$;

create function graphile_worker._hathi_adopt_suspect(pool_id text, task_ids integer[], forbidden text[], accepted text[], clock timestamp with time zone)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  next record;
begin
  perform 1 from graphile_worker._private_workers as worker where worker.id = pool_id for key share skip locked;
  if not found then
    return;
  end if;
  for next in
    select job.id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
      and crash.release_at <= now()
      and job.attempts < job.max_attempts
      and job.task_id = any (task_ids)
      and (forbidden is null or (job.flags ?| forbidden) is not true)
      and (accepted is null or (job.flags ?| accepted) is true)
      and (
        job.job_queue_id is null
        or exists (
          select from graphile_worker._private_job_queues as queue
          where queue.id = job.job_queue_id
            and (queue.locked_by = 'hathi-recovery' or queue.is_available)
            and queue.locked_at is distinct from 'infinity'
        )
      )
    order by crash.crashes desc, job.priority, job.run_at, job.id
    limit 10
    for update of job skip locked
  loop
    if next.job_queue_id is not null then
      perform 1
      from graphile_worker._private_job_queues as queue
      where queue.id = next.job_queue_id
        and (queue.locked_by = 'hathi-recovery' or queue.is_available)
        -- Paused, otherwise.
        and queue.locked_at is distinct from 'infinity'
      for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = pool_id, locked_at = coalesce(clock, now())
      where queue.id = next.job_queue_id;
    end if;
    return query
      update graphile_worker._private_jobs as job
      set attempts = job.attempts + 1, locked_by = pool_id, locked_at = coalesce(clock, now())
      where job.id = next.id
      returning job.*;
    return;
  end loop;
end;
$hathi$;

create function graphile_worker._hathi_align_pauses(instant timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  freed text[];
  ends integer;
begin
  with ended as materialized (
    select pause.kind, pause.name
    from graphile_worker._hathi_pauses as pause
    where pause.until <= instant
    for update skip locked
  ), ours as materialized (
    select queue.queue_name
    from graphile_worker._private_job_queues as queue
    where queue.queue_name in (select ended.name from ended where ended.kind = 'queue')
    order by queue.id
    for no key update skip locked
  ), gone as (
    delete from graphile_worker._hathi_pauses as pause
    using ended
    where pause.kind = ended.kind
      and pause.name = ended.name
      and (
        pause.kind <> 'queue'
        or pause.name in (select ours.queue_name from ours)
        or not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = pause.name)
      )
    returning pause.kind, pause.name
  )
  select array_agg(gone.name) filter (where gone.kind = 'queue'), count(*) into freed, ends from gone;

  -- A job of the queue that is still running keeps it, and from now on the four-hour rule holds for it again.
  update graphile_worker._private_job_queues as queue
  set
    locked_at = case when queue.locked_by = 'hathi:paused' then null else now() end,
    locked_by = nullif(queue.locked_by, 'hathi:paused')
  where queue.queue_name = any (freed) and queue.locked_at = 'infinity';
  if ends > 0 then
    perform pg_notify('hathi:pauses', '');
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  end if;

  -- The pause's row is locked as well: a lock on a queue whose pause has just been deleted would never end.
  update graphile_worker._private_job_queues as queue
  set locked_at = 'infinity', locked_by = coalesce(queue.locked_by, 'hathi:paused')
  where queue.id = any (array(
    select unlocked.id
    from graphile_worker._hathi_pauses as pause
    join graphile_worker._private_job_queues as unlocked on unlocked.queue_name = pause.name
    where pause.kind = 'queue' and pause.until > instant and unlocked.locked_at is distinct from 'infinity'
    order by unlocked.id
    for share of pause skip locked
    for no key update of unlocked skip locked
  ));
end;
$hathi$;

create function graphile_worker._hathi_announce_places(task_ids integer[], clock timestamp with time zone)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
AS $hathi$
begin
  perform pg_notify('hathi:limits', '')
  from (
    select
    from graphile_worker._private_tasks as freed
    join graphile_worker._hathi_limited_tasks as its on its.task = freed.identifier
    join graphile_worker._hathi_limited_tasks as other on other.limit_ids && its.limit_ids
    join graphile_worker._private_tasks as task on task.identifier = other.task
    cross join lateral (
      select from graphile_worker._private_jobs as job
      where job.task_id = task.id
        and job.locked_at is null
        and job.attempts < job.max_attempts
        and job.run_at <= coalesce(clock, now())
      limit 1
    ) as waiting
    where freed.id = any (task_ids)
    limit 1
  ) as found;
end;
$hathi$;

create function graphile_worker._hathi_are_within(limit_ids integer[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return (
    select case
      when coalesce(bool_and(not now.is_held and now.taken <= now.places), true)
        then coalesce(bool_and(now.places >= 100 and now.taken <= now.places / 4), true)
    end
    from (
      select coalesce(o.places, l.places) as places,
        exists (
          select from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > clock_timestamp()
        ) as is_held,
        graphile_worker._hathi_count_locked(array(
          select task.id from graphile_worker._hathi_limited_tasks as m
          join graphile_worker._private_tasks as task on task.identifier = m.task
          where l.id = any (m.limit_ids)
        ), '{}', null) as taken
      from graphile_worker._hathi_limits as l
      left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
      where l.id = any (limit_ids) and l.kind = 'concurrency'
    ) as now
  );
end;
$hathi$;

create function graphile_worker._hathi_bound_transaction(time_limit interval)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_bury_cancelled(candidates bigint[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  cancelled bigint[];
begin
  select array_agg(job.id) into cancelled
  from (
    select free.id
    from graphile_worker._private_jobs as free
    where free.id = any (candidates)
      and free.locked_at is null
      and exists (
        select from graphile_worker._hathi_job_cancellations as entry where entry.job_id = free.id and entry.outcome is null
      )
    order by free.id
    for update skip locked
  ) as job;
  if cancelled is null then
    return null;
  end if;
  delete from graphile_worker._private_jobs where id = any (cancelled);
  delete from graphile_worker._private_job_retirements where id = any (cancelled);
  update graphile_worker._hathi_job_cancellations
  set outcome = 'cancelled', settled_at = now()
  where job_id = any (cancelled);
  return cancelled;
end;
$hathi$;

create function graphile_worker._hathi_cancelled_before(job_ids bigint[])
 RETURNS bigint[]
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select array_agg(entry.job_id)
  from graphile_worker._hathi_job_cancellations as entry
  where entry.job_id = any (job_ids) and entry.outcome = 'cancelled';
$hathi$;

create function graphile_worker._hathi_check_pause(kind text, name text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_check_spec(identifier text, queue_name text, job_key text, max_attempts integer, priority integer)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_claim_jobs(pool_id text, task_ids integer[], wanted integer, per_queue integer, forbidden text[], accepted text[], clock timestamp with time zone, mark_priorities smallint[], mark_run_ats timestamp with time zone[], mark_ids bigint[], only_queues integer[], relaxed boolean, OUT jobs text, OUT due_in_ms double precision, OUT marks text, OUT tasks_ms double precision, OUT queues_ms double precision, OUT left_queues integer[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_incremental_sort TO 'off'
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  instant timestamptz := coalesce(clock, now());
  began_at timestamptz := clock_timestamp();
  read_at timestamptz;
  free record;
  queued record;
  taken tid[];
  taken_queues integer[];
  taken_free integer;
  has_queued boolean;
  new_marks text[] := '{}';
  is_contended boolean := false;
  due timestamptz;
begin
  -- Everything is paused.
  if task_ids = '{}' then
    marks := '[]';
    tasks_ms := 0;
    queues_ms := 0;
    return;
  end if;
  select * into free
  from graphile_worker._hathi_scan_tasks(
    task_ids, wanted, forbidden, accepted, instant, mark_priorities, mark_run_ats, mark_ids
  );
  taken := free.rows;
  taken_free := cardinality(taken);
  read_at := clock_timestamp();
  tasks_ms := date_part('epoch', read_at - began_at) * 1000;

  -- Asked here as well, since most schemas have none, and a call costs more than the question.
  has_queued := only_queues is distinct from '{}' and exists (
    select from graphile_worker._private_jobs as job
    where job.locked_at is null and job.attempts < job.max_attempts and job.job_queue_id is not null
  );
  if has_queued then
    if only_queues is null then
      select * into queued
      from graphile_worker._hathi_scan_queues(task_ids, wanted, per_queue, forbidden, accepted, instant);
    else
      select graphile_worker._hathi_sort_queues(array_agg(task.id), array_agg(queue.id), forbidden, accepted, instant) into only_queues
      from unnest(graphile_worker._hathi_tasks_in_queues(task_ids)) as task (id)
      cross join unnest(only_queues) as queue (id);
      select * into queued
      from graphile_worker._hathi_lock_queues(
        only_queues, array_fill(greatest(wanted / greatest(cardinality(only_queues), 1), 1), array[cardinality(only_queues)]),
        wanted, per_queue, task_ids, forbidden, accepted, instant
      );
    end if;
    is_contended := queued.contended;
    if cardinality(queued.rows) > 0 then
      select array_agg(line.tid), array_agg(distinct line.queue_id) filter (where line.queue_id is not null),
        count(*) filter (where line.queue_id is null)
      into taken, taken_queues, taken_free
      from (
        select line.tid, line.queue_id
        from (
          select row.tid, null::integer as queue_id, free.levels[width_bucket((row.nth - 1)::integer, free.level_ends) + 1] as priority,
             row.run_at, row.id
          from unnest(free.rows, free.run_ats, free.ids) with ordinality as row (tid, run_at, id, nth)
          union all
          select row.tid, row.queue_id, row.priority, row.run_at, row.id
          from unnest(queued.rows, queued.queue_ids, queued.priorities, queued.run_ats, queued.ids)
            as row (tid, queue_id, priority, run_at, id)
        ) as line
        order by line.priority, line.run_at, line.id
        limit wanted
      ) as line;
    end if;
  end if;
  queues_ms := date_part('epoch', clock_timestamp() - read_at) * 1000;
  if has_queued and cardinality(only_queues) > coalesce(cardinality(taken_queues), 0) then
    left_queues := array(select id from unnest(only_queues) as id where id <> all (coalesce(taken_queues, '{}')));
  end if;

  if cardinality(taken) > 0 then
    jobs := '[' || graphile_worker._hathi_take_in_order(pool_id, instant, taken) || ']';

    if taken_queues is not null then
      update graphile_worker._private_job_queues
      set locked_by = pool_id, locked_at = instant
      where id = any (taken_queues);
    elsif relaxed then
      -- If the server crashes, the claim is forgotten and the job runs again, which it must be ready for anyway. The settle that
      -- follows is durable, and flushes everything before it. A claim in a named queue must last: were it forgotten, the next
      -- job of the queue could start while this one is still running.
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;

  for nth in 1 .. cardinality(free.levels) loop
    if least(free.level_ends[nth], taken_free) > coalesce(free.level_ends[nth - 1], 0) then
      new_marks := new_marks || json_build_array(
        free.levels[nth],
        free.run_ats[least(free.level_ends[nth], taken_free)],
        free.ids[least(free.level_ends[nth], taken_free)]::text
      )::text;
    end if;
  end loop;
  marks := '[' || array_to_string(new_marks, ',') || ']';

  if coalesce(cardinality(taken), 0) < wanted then
    if is_contended then
      due_in_ms := 0;
    elsif mark_priorities = '{}' then
      due := free.next_due;
      if has_queued or free.levels <> '{}' then
        due := least(due, graphile_worker._hathi_next_due(
          task_ids, forbidden, accepted, instant, free.levels, free.head_run_ats, free.head_ids
        ));
      end if;
      due_in_ms := date_part('epoch', due - instant) * 1000;
    end if;
  end if;
end;
$hathi$;

create function graphile_worker._hathi_claim_limited(pool_id text, task_ids integer[], wanted integer, ahead integer, per_queue integer, forbidden text[], accepted text[], clock timestamp with time zone, with_queues boolean, turns jsonb, nth integer, relaxed boolean, lates jsonb, timed_ahead integer, may_be_late boolean, OUT jobs text, OUT starts text, OUT took_ms double precision, OUT due_in_ms double precision, OUT is_blocked boolean, OUT new_turns jsonb, OUT are_wide boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  -- A stricter isolation level would count what there was before.
  if may_be_late and current_setting('transaction_isolation') in ('read committed', 'read uncommitted') then
    begin
      select claimed.* into jobs, starts, took_ms, due_in_ms, is_blocked, new_turns, are_wide
      from graphile_worker._hathi_claim_within_limits(
        pool_id, task_ids, wanted, ahead, per_queue, forbidden, accepted, clock, with_queues, turns, nth, relaxed, lates, timed_ahead, true
      ) as claimed;
      return;
    exception when sqlstate 'HT001' then
      -- Others were quicker: nothing was taken.
      null;
    end;
  end if;
  select claimed.* into jobs, starts, took_ms, due_in_ms, is_blocked, new_turns, are_wide
  from graphile_worker._hathi_claim_within_limits(
    pool_id, task_ids, wanted, ahead, per_queue, forbidden, accepted, clock, with_queues, turns, nth, relaxed, lates, timed_ahead, false
  ) as claimed;
end;
$hathi$;

create function graphile_worker._hathi_claim_within_limits(pool_id text, task_ids integer[], wanted integer, ahead integer, per_queue integer, forbidden text[], accepted text[], clock timestamp with time zone, with_queues boolean, turns jsonb, nth integer, relaxed boolean, lates jsonb, timed_ahead integer, is_late boolean, OUT jobs text, OUT starts text, OUT took_ms double precision, OUT due_in_ms double precision, OUT is_blocked boolean, OUT new_turns jsonb, OUT are_wide boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_incremental_sort TO 'off'
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET extra_float_digits TO '1'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  instant constant timestamptz := coalesce(clock, now());
  began_at constant timestamptz := clock_timestamp();
  moment timestamptz;
  horizon timestamptz;
  member record;
  bound record;
  -- Limits on everything, and how many places of each are free.
  w_id integer[] := '{}';
  w_free integer[] := '{}';
  w_places integer[] := '{}';
  -- The tasks, in the order in which they are served.
  t_id integer[] := '{}';
  t_limits text[] := '{}';
  t_path text[] := '{}';
  t_admit text[] := '{}';
  t_rated boolean[] := '{}';
  t_alike boolean[] := '{}';
  t_late double precision[] := '{}';
  t_durable boolean[] := '{}';
  t_done boolean[] := '{}';
  t_blocked boolean[] := '{}';
  level integer := -32769;
  free integer;
  room integer := wanted + greatest(ahead, 0);
  left_now integer := wanted;
  most integer;
  found record;
  queued record;
  verdict record;
  head record;
  taken_rows tid[];
  taken_queues integer[];
  taken integer := 0;
  job_texts text[] := '{}';
  start_texts text[] := '{}';
  mine integer[];
  is_durable boolean := false;
  is_contended boolean := false;
  due timestamptz;
  has_queued boolean;
  has_verdict boolean;
  spare integer;
  last_place integer;
  -- Of a late claim: all that it has taken, and what still needs tokens, by task and position.
  could_be_late boolean;
  late_rows tid[] := '{}';
  l_task integer[] := '{}';
  l_first integer[] := '{}';
  l_last integer[] := '{}';
begin
  is_blocked := false;
  are_wide := false;
  new_turns := turns;
  took_ms := 0;
  if room <= 0 then
    return;
  end if;
  mine := array(
    select distinct bound_id
    from graphile_worker._hathi_limited_tasks as m
    join graphile_worker._private_tasks as task on task.identifier = m.task
    cross join unnest(m.limit_ids) as bound_id
    where task.id = any (task_ids)
  );
  if mine = '{}' then
    return;
  end if;
  if not is_late and not graphile_worker._hathi_lock_limits(mine) then
    due_in_ms := 0;
    return;
  end if;
  moment := clock_timestamp();
  horizon := moment + interval '50 milliseconds';

  for bound in
    select l.id, coalesce(o.places, l.places) as places, array(
        select task.id from graphile_worker._hathi_limited_tasks as m
        join graphile_worker._private_tasks as task on task.identifier = m.task
        where l.id = any (m.limit_ids)
      ) as tasks, (
        select h.until from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > moment
      ) as held_until, l.kind
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (mine) and (l.kind = 'concurrency' and l.path = '{}' or exists (
      select from graphile_worker._hathi_limit_holds as h where h.limit_id = l.id and h.key = '*' and h.until > moment
    ))
  loop
    w_id := w_id || bound.id;
    w_places := w_places || bound.places;
    w_free := w_free || case
      when bound.held_until is not null then 0
      when is_late then bound.places / 4 * 3
      else bound.places - graphile_worker._hathi_count_locked(bound.tasks, '{}', null)
    end;
    due := least(due, bound.held_until);
  end loop;

  for member in
    select known.*, array(
        select l.id from graphile_worker._hathi_limits as l
        where l.id = any (known.limit_ids)
          and (l.kind = 'rate' or l.kind = 'concurrency' and l.path <> '{}' and l.path <> known.path)
      ) as admit, own.is_rated, own.is_durable, own.has_one_rate
    from (
      select task.id, m.limit_ids, m.since, coalesce((
          select l.path from graphile_worker._hathi_limits as l
          where l.id = any (m.limit_ids) and l.path <> '{}'
          order by l.kind <> 'fair', l.kind <> 'concurrency', l.id
          limit 1
        ), '{}') as path
      from graphile_worker._hathi_limited_tasks as m
      join graphile_worker._private_tasks as task on task.identifier = m.task
      where task.id = any (task_ids)
    ) as known
    cross join lateral (
      select coalesce(bool_or(l.kind = 'rate'), false) as is_rated,
        coalesce(bool_or(l.kind = 'rate' or l.kind = 'concurrency' and l.path <> '{}'), false) as is_durable,
        count(*) filter (where l.kind = 'rate') = 1 and bool_and(l.path = '{}' and l.cost_path is null) as has_one_rate
      from graphile_worker._hathi_limits as l
      where l.id = any (known.limit_ids)
    ) as own
    order by hashint4(known.id + nth)
  loop
    t_id := t_id || member.id;
    t_limits := t_limits || member.limit_ids::text;
    t_path := t_path || member.path::text;
    t_admit := t_admit || member.admit::text;
    t_rated := t_rated || member.is_rated;
    t_alike := t_alike || member.has_one_rate;
    t_durable := t_durable || member.is_durable;
    t_late := t_late || least(5000, coalesce((lates ->> member.id::text)::double precision, 0));
    t_blocked := t_blocked || false;
    -- Claims that knew nothing of the limit may still be under way.
    t_done := t_done || (member.since between moment - interval '250 milliseconds' and moment + interval '250 milliseconds');
    if t_done[cardinality(t_done)] then
      due := least(due, member.since + interval '250 milliseconds');
    end if;
  end loop;

  has_queued := with_queues and exists (
    select from graphile_worker._private_jobs as job where job.is_available and job.job_queue_id is not null
  );
  could_be_late := not exists (
      select from graphile_worker._hathi_limits as l
      where l.id = any (mine) and (l.kind = 'fair' or l.path <> '{}' or l.cost_path is not null)
    )
    and not exists (
      select from unnest(t_rated, t_alike) as task (is_rated, has_one) where task.is_rated and (has_queued or not task.has_one)
    );
  if is_late and not could_be_late then
    raise sqlstate 'HT001';
  end if;
  for phase in 0 .. 1 loop
    if (phase + nth) % 2 = 0 and has_queued then
      -- Jobs of named queues.
      for t in 1 .. cardinality(t_id) loop
        continue when t_done[t];
        free := (select min(w_free[w]) from generate_subscripts(w_id, 1) as w where w_id[w] = any (t_limits[t]::integer[]));
        most := least(left_now, coalesce(free, left_now));
        t_blocked[t] := t_blocked[t] or coalesce(free <= 0, false);
        continue when most <= 0;
        select * into queued
        from graphile_worker._hathi_scan_queues(
          -- Jobs that have a time to start cannot wait for one another.
          array[t_id[t]], most, case when t_rated[t] then 1 else per_queue end, forbidden, accepted, instant
        );
        is_contended := is_contended or queued.contended;
        continue when queued.rows = '{}';
        select * into verdict
        from graphile_worker._hathi_admit_jobs(
          t_limits[t]::integer[], queued.rows, queued.queue_ids, most, moment, horizon, t_late[t]
        );
        due := least(due, verdict.release_at);
        continue when verdict.admitted = '{}';
        taken_rows := array(select queued.rows[a] from unnest(verdict.admitted) with ordinality as admitted (a, place) order by place);
        taken_queues := array(select distinct queued.queue_ids[a] from unnest(verdict.admitted) as a);
        start_texts := start_texts || graphile_worker._hathi_start_texts(
          taken, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[t], began_at
        );
        job_texts := job_texts || graphile_worker._hathi_take_jobs(pool_id, instant, taken_rows);
        update graphile_worker._private_job_queues as queue
        set locked_by = pool_id, locked_at = instant
        where queue.id = any (taken_queues);
        is_durable := true;
        most := cardinality(taken_rows);
        taken := taken + most;
        room := room - most;
        left_now := greatest(0, left_now - most);
        for w in 1 .. cardinality(w_id) loop
          if w_id[w] = any (t_limits[t]::integer[]) then
            w_free[w] := w_free[w] - most;
          end if;
        end loop;
      end loop;
    end if;

    if (phase + nth) % 2 = 1 then
      while room > 0 loop
        select min(first.priority) into level
        from unnest(t_id, t_done) as task (id, is_done)
        cross join lateral (
          select job.priority
          from graphile_worker._private_jobs as job
          where job.locked_at is null
            and job.attempts < job.max_attempts
            and job.job_queue_id is null
            and job.task_id = task.id
            and job.priority > level
          order by job.priority
          limit 1
        ) as first
        where not task.is_done;
        exit when level is null;
        for t in 1 .. cardinality(t_id) loop
          continue when t_done[t];
          loop
            free := (select min(w_free[w]) from generate_subscripts(w_id, 1) as w where w_id[w] = any (t_limits[t]::integer[]));
            if free <= 0 then
              t_blocked[t] := true;
              t_done[t] := true;
              exit;
            end if;
            -- Ahead of the free slots only where the limit has places to spare: what is held takes a place.
            spare := room - left_now;
            if t_rated[t] then
              spare := case when least(spare, timed_ahead) > 0 and t_alike[t] then coalesce(graphile_worker._hathi_spare_tokens(
                (t_admit[t]::integer[])[1], left_now, least(spare, timed_ahead), moment, t_late[t]
              ), 0) else 0 end;
            end if;
            most := least(room, coalesce(free, room), left_now + least(
              spare, case when free is not null then greatest(0, free - left_now) / 2 end
            ));
            exit when most <= 0;
            if t_path[t] = '{}' then
              select coalesce(array_agg(next.tid), '{}') as rows, false as is_unfinished, null::timestamptz as release_at,
                null::text[] as keys, null::integer[] as useds, null::text as last_key, false as is_contended
              into found
              from (
                select job.ctid as tid
                from graphile_worker._private_jobs as job
                where job.locked_at is null
                  and job.attempts < job.max_attempts
                  and job.job_queue_id is null
                  and job.task_id = t_id[t]
                  and job.priority = level
                  and job.run_at <= instant
                  and (forbidden is null or (job.flags ?| forbidden) is not true)
                  and (accepted is null or (job.flags ?| accepted) is true)
                order by job.run_at, job.id
                limit most
                for update skip locked
              ) as next;
            else
              select * into found
              from graphile_worker._hathi_find_turns(
                t_id[t], t_path[t]::text[], t_limits[t]::integer[], level::smallint, left_now, most,
                coalesce(new_turns -> t_id[t]::text ->> 0, ''), coalesce((new_turns -> t_id[t]::text ->> 1)::integer, 0),
                forbidden, accepted, instant, moment, horizon
              );
              due := least(due, found.release_at);
              is_contended := is_contended or found.is_contended;
              if found.is_unfinished then
                is_contended := true;
                new_turns := jsonb_set(new_turns, array[t_id[t]::text], jsonb_build_array(found.last_key, 1000000));
              end if;
            end if;

            taken_rows := found.rows;
            has_verdict := taken_rows <> '{}' and t_admit[t] <> '{}' and not is_late;
            if has_verdict then
              select * into verdict
              from graphile_worker._hathi_admit_jobs(t_admit[t]::integer[], taken_rows, null, most, moment, horizon, t_late[t]);
              due := least(due, verdict.release_at);
              taken_rows := case
                when verdict.admitted[cardinality(verdict.admitted)] = cardinality(verdict.admitted) then found.rows[1:cardinality(verdict.admitted)]
                else array(select found.rows[a] from unnest(verdict.admitted) with ordinality as admitted (a, place) order by place)
              end;
            end if;
            if cardinality(taken_rows) > 0 then
              if has_verdict then
                start_texts := start_texts || graphile_worker._hathi_start_texts(
                  taken, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[t], began_at
                );
              end if;
              if is_late and t_admit[t] <> '{}' then
                l_task := l_task || t;
                l_first := l_first || taken + 1;
                l_last := l_last || taken + cardinality(taken_rows);
              end if;
              if is_late then
                late_rows := late_rows || taken_rows;
              end if;
              job_texts := job_texts || case
                when t_path[t] = '{}' then graphile_worker._hathi_take_in_order(pool_id, instant, taken_rows)
                else graphile_worker._hathi_take_jobs(pool_id, instant, taken_rows)
              end;
              taken := taken + cardinality(taken_rows);
              room := room - cardinality(taken_rows);
              left_now := greatest(0, left_now - cardinality(taken_rows));
              is_durable := is_durable or t_durable[t];
              for w in 1 .. cardinality(w_id) loop
                if w_id[w] = any (t_limits[t]::integer[]) then
                  w_free[w] := w_free[w] - cardinality(taken_rows);
                  is_durable := is_durable or w_free[w] < w_places[w] / 2.0;
                end if;
              end loop;
              if t_path[t] <> '{}' and not found.is_unfinished and found.keys[1] is not null then
                last_place := cardinality(found.rows);
                if has_verdict then
                  last_place := verdict.admitted[cardinality(verdict.admitted)];
                end if;
                new_turns := jsonb_set(
                  new_turns, array[t_id[t]::text], jsonb_build_array(found.keys[last_place], found.useds[last_place])
                );
              end if;
              -- There may be more of the same keys.
              continue when t_path[t] <> '{}' and room > 0 and not found.is_unfinished;
            elsif found.rows <> '{}' and t_path[t] = '{}' then
              -- A rate that admits nothing now.
              t_done[t] := true;
              t_blocked[t] := true;
            end if;
            if room > 0 and t_path[t] = '{}' and not t_done[t] then
              select job.run_at into head
              from graphile_worker._private_jobs as job
              where job.locked_at is null
                and job.attempts < job.max_attempts
                and job.job_queue_id is null
                and job.task_id = t_id[t]
                and job.priority = level
                and (forbidden is null or (job.flags ?| forbidden) is not true)
                and (accepted is null or (job.flags ?| accepted) is true)
              order by job.run_at, job.id
              limit 1;
              if head.run_at > instant then
                due := least(due, moment + (least(head.run_at, instant + interval '1 day') - instant));
              elsif cardinality(taken_rows) < most then
                -- Another transaction holds it, or a rate refused it; then the time of its release is known.
                is_contended := is_contended
                  or head.run_at is not null and (not has_verdict or cardinality(taken_rows) = cardinality(found.rows));
              end if;
            end if;
            exit;
          end loop;
        end loop;
      end loop;
    end if;
  end loop;

  if is_late and (taken > 0 or true = any (t_blocked)) then
    if true = any (t_blocked) or not graphile_worker._hathi_lock_limits(mine) then
      raise sqlstate 'HT001';
    end if;
    moment := clock_timestamp();
    for l in 1 .. cardinality(l_task) loop
      select * into verdict
      from graphile_worker._hathi_admit_jobs(
        t_admit[l_task[l]]::integer[], late_rows[l_first[l]:l_last[l]], null, taken, moment, moment + interval '50 milliseconds', t_late[l_task[l]]
      );
      if cardinality(verdict.admitted) < l_last[l] - l_first[l] + 1 then
        raise sqlstate 'HT001';
      end if;
      start_texts := start_texts || graphile_worker._hathi_start_texts(
        l_first[l] - 1, verdict.counts, verdict.start_ats, verdict.steps, verdict.slacks, t_late[l_task[l]], began_at
      );
    end loop;
    are_wide := graphile_worker._hathi_are_within(mine);
    if are_wide is null then
      raise sqlstate 'HT001';
    end if;
    is_durable := is_durable or not are_wide;
    are_wide := are_wide and graphile_worker._hathi_have_tokens(mine, taken, moment);
  elsif not is_late and could_be_late then
    are_wide := coalesce((
        select bool_and(w_places[w] >= 100 and w_places[w] - w_free[w] <= w_places[w] / 4) from generate_subscripts(w_id, 1) as w
      ), true)
      and graphile_worker._hathi_have_tokens(mine, taken, moment);
  end if;

  if taken > 0 then
    jobs := '[' || array_to_string(job_texts, ',') || ']';
    starts := '[' || array_to_string(start_texts, ',') || ']';
    -- A claim that the server forgot in a crash would free a place that is taken. Only while less than half of a limit is used need it not last:
    -- then the limit can be exceeded by as much, until the forgotten runs end.
    if relaxed and not is_durable then
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  if room > 0 then
    if has_queued then
      due := least(due, moment + (least(
        graphile_worker._hathi_next_due(t_id, forbidden, accepted, instant, '{}', '{}', '{}'), instant + interval '1 day'
      ) - instant));
    end if;
    is_blocked := not false = any (t_blocked) and not has_queued;
    due_in_ms := case
      when is_contended then 0
      when due is not null then greatest(1, date_part('epoch', due - clock_timestamp()) * 1000)
    end;
  end if;
  took_ms := date_part('epoch', clock_timestamp() - began_at) * 1000;
end;
$hathi$;

create function graphile_worker._hathi_collect_limits(tasks jsonb, cap integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
AS $hathi$
declare
  task record;
  counted jsonb := '{}';
  running bigint;
begin
  if not exists (select from graphile_worker._hathi_limited_tasks) then
    return '[]';
  end if;
  for task in
    select figures.value, member.task as name, known.id, indexed.path
    from jsonb_array_elements(tasks) as figures
    join graphile_worker._hathi_limited_tasks as member on member.task = figures.value ->> 'task'
    join graphile_worker._private_tasks as known on known.identifier = member.task
    left join lateral (
      select bound.path
      from graphile_worker._hathi_limits as bound
      where bound.id = any (member.limit_ids) and bound.kind = 'concurrency'
        and graphile_worker._hathi_has_limit_index('r', known.id, bound.path)
      order by cardinality(bound.path)
      limit 1
    ) as indexed on true
  loop
    if task.path is null then
      running := (task.value ->> 'running')::bigint;
    else
      execute format(
        'select count(*) from (
          select from graphile_worker._private_jobs as job where %s = %s and job.locked_at is not null limit %s
        ) as locked',
        case when task.path = '{}' then 'job.task_id' else 'job.task_id + 0' end, task.id, cap
      ) into running;
    end if;
    counted := counted || jsonb_build_object(task.name, jsonb_build_array(task.value -> 'waiting', running));
  end loop;
  return coalesce((
    select jsonb_agg(jsonb_build_object('scope', named.scope, 'limit', named.name, 'waiting', named.waiting, 'running', named.running)
      order by named.scope, named.name)
    from (
      select held.scope, held.name, sum((held.figures ->> 0)::bigint) as waiting, sum((held.figures ->> 1)::bigint) as running
      from (
        select distinct bound.scope, bound.name, member.task, counted -> member.task as figures
        from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
        where counted ? member.task
      ) as held
      group by held.scope, held.name
    ) as named
  ), '[]');
end;
$hathi$;

create function graphile_worker._hathi_collect_rollup(cap integer, max_tasks integer, max_pages integer)
 RETURNS jsonb
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_complete_in(job_id bigint, pool_id text, attempt integer, earlier xid8, time_limit interval, run_ms integer, result text, kept_as text, kept_days integer, result_days integer, redacted text[])
 RETURNS xid8
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_complete_jobs(pool_id text, job_ids bigint[], queue_ids integer[], ended_ids bigint[], OUT lost bigint[], OUT held bigint[], OUT held_queues integer[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  done bigint[];
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
    returning job.id
  )
  select array_agg(gone.id) into done from gone;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, done) as missing;
  -- A release that comes without its job comes late.
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null or job_ids = '{}');
end;
$hathi$;

create function graphile_worker._hathi_complete_jobs_kept(pool_id text, job_ids bigint[], queue_ids integer[], ended_ids bigint[], tries integer[], runs integer[], results text[], kept_tasks integer[], kept_as text[], kept_days integer[], result_days integer[], redacted text[], OUT lost bigint[], OUT held bigint[], OUT held_queues integer[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_condense_times(from_period text, to_period text, keep interval)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_count_locked(task_ids integer[], path text[], key text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET jit TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
AS $hathi$
declare
  task_id integer;
  part integer;
  total integer := 0;
begin
  foreach task_id in array task_ids loop
    if path = '{}' then
      execute replace($sql$
        select count(*) from graphile_worker._private_jobs as job where job.task_id = {task} and job.locked_at is not null
      $sql$, '{task}', task_id::text) into part;
    else
      execute replace(replace(replace($sql$
        select count(*) from graphile_worker._private_jobs as job
        where {of_task} = {task} and job.locked_at is not null
          and graphile_worker._hathi_limit_key(job.payload, {path}::text[]) collate "C" = $1
      $sql$, '{task}', task_id::text), '{path}', quote_literal(path::text)), '{of_task}', case
        when graphile_worker._hathi_has_limit_index('r', task_id, path) then 'job.task_id + 0' else 'job.task_id'
      end) into part using key;
    end if;
    total := total + part;
  end loop;
  return total;
end;
$hathi$;

create function graphile_worker._hathi_count_waiting(task integer, cap integer)
 RETURNS TABLE(waiting bigint, scheduled bigint, is_capped boolean, oldest timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
AS $hathi$
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

create function graphile_worker._hathi_declare_limits(tasks text[], definitions jsonb, declared_by text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
#variable_conflict use_column
declare
  changes integer;
  total integer := 0;
  task_name text;
  ids integer[];
begin
  insert into graphile_worker._hathi_limits as old
    (scope, name, kind, path, places, period_ms, burst, weight, weight_path, cost, cost_path, declared_by)
  select new.scope, new.name, new.kind, new.path, new.places, new.period_ms, new.burst, new.weight, new.weight_path, new.cost,
    new.cost_path, _hathi_declare_limits.declared_by
  from jsonb_to_recordset(definitions) as new (
    scope text, name text, kind text, path text[], places integer, period_ms double precision, burst integer,
    weight integer, weight_path text[], cost integer, cost_path text[]
  )
  order by new.scope, new.name, new.kind, new.path
  on conflict (scope, name, kind, path) do update set
    places = excluded.places, period_ms = excluded.period_ms, burst = excluded.burst, weight = excluded.weight,
    weight_path = excluded.weight_path, cost = excluded.cost, cost_path = excluded.cost_path, origin = 'code',
    declared_at = now(), declared_by = excluded.declared_by
  where (old.places, old.period_ms, old.burst, old.weight, old.weight_path, old.cost, old.cost_path, old.origin)
    is distinct from (excluded.places, excluded.period_ms, excluded.burst, excluded.weight, excluded.weight_path, excluded.cost,
      excluded.cost_path, 'code');
  get diagnostics total = row_count;

  for task_name in select distinct name from unnest(tasks) as name order by name loop
    perform 1 from graphile_worker._hathi_limited_tasks as member where member.task = task_name for update;
    ids := array(
      select bound.id
      from jsonb_array_elements(definitions) as new (definition)
      join graphile_worker._hathi_limits as bound
        on bound.scope = new.definition ->> 'scope' and bound.name = new.definition ->> 'name' and bound.kind = new.definition ->> 'kind'
        and bound.path = array(select jsonb_array_elements_text(new.definition -> 'path'))
      where new.definition -> 'tasks' ? task_name
      union
      select bound.id
      from graphile_worker._hathi_limited_tasks as member
      join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
      where member.task = task_name and bound.origin = 'set'
      order by 1
    );
    if ids = '{}' then
      delete from graphile_worker._hathi_limited_tasks as member where member.task = task_name;
    else
      insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
      values (task_name, ids)
      on conflict (task) do update set limit_ids = excluded.limit_ids
      where member.limit_ids <> excluded.limit_ids;
    end if;
    get diagnostics changes = row_count;
    total := total + changes;
  end loop;
  if total > 0 then
    perform pg_notify('hathi:limits', 'changed');
  end if;
  return total > 0;
end;
$hathi$;

create function graphile_worker._hathi_fail_jobs(pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[], ended_ids bigint[], in_doubt boolean, OUT lost bigint[], OUT held bigint[], OUT held_queues integer[], OUT cancelled bigint[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_hashjoin TO 'on'
 SET enable_nestloop TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  mine bigint[];
  done bigint[];
  final bigint[];
begin
  select array_agg(job.id) into mine
  from (
    select id
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  ) as job;
  with failed as (
    update graphile_worker._private_jobs as job
    set
      last_error = outcome.error,
      run_at = greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second',
      locked_by = null,
      locked_at = null,
      payload = coalesce(outcome.payload::json, job.payload)
    from unnest(job_ids, tries, errors, payloads) as outcome (id, attempts, error, payload)
    where job.id = outcome.id
      and job.id = any (mine)
      and (
        job.attempts = outcome.attempts
        or job.attempts < outcome.attempts and not in_doubt
        or job.attempts = job.max_attempts
          and (
            not in_doubt
            or exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)
          )
      )
    returning job.id, job.attempts >= job.max_attempts as is_final
  )
  select array_agg(failed.id), array_agg(failed.id) filter (where failed.is_final) into done, final from failed;
  if final is not null then
    cancelled := graphile_worker._hathi_bury_cancelled(final);
  end if;
  if in_doubt then
    cancelled := cancelled || graphile_worker._hathi_cancelled_before(job_ids);
  end if;
  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, done) as missing;
  -- What we have locked is not held by others: it is on another attempt.
  if held && mine then
    lost := lost || array(select id from unnest(held) as id where id = any (mine));
    held := nullif(array(select id from unnest(held) as id where id <> all (mine)), '{}');
  end if;
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
end;
$hathi$;

create function graphile_worker._hathi_fail_jobs_kept(pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[], ended_ids bigint[], in_doubt boolean, runs integer[], classes text[], fingerprints text[], stacks text[], kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[], OUT lost bigint[], OUT held bigint[], OUT held_queues integer[], OUT cancelled bigint[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_find_dead_workers(threshold interval, resilience double precision, resilient_flags text[], grace interval, with_orphans boolean, witnessed interval)
 RETURNS TABLE(worker_id text, reason text, last_heartbeat_at timestamp with time zone, metadata jsonb)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
#variable_conflict use_column
declare
  candidate record;
  is_lost boolean;
  is_silent boolean;
begin
  if with_orphans then
    update graphile_worker._private_workers as worker
    set last_heartbeat_at = now()
    where worker.id in (
      select ahead.id
      from graphile_worker._private_workers as ahead
      where ahead.last_heartbeat_at > now() + interval '1 second'
      order by ahead.id
      for no key update skip locked
    );
  end if;

  -- A worker whose row is locked is sending a heartbeat or claiming right now.
  for candidate in
    select worker.id, worker.last_heartbeat_at as beat_at, worker.metadata
    from graphile_worker._private_workers as worker
    left join graphile_worker._hathi_worker_lines as line on line.id = worker.id
    where worker.last_heartbeat_at < now() - threshold and coalesce(witnessed >= threshold, true) or line.lost_at <= now() - grace
    order by worker.id
    for update of worker skip locked
  loop
    -- Read again, since it may have been replaced before its worker's row was locked.
    select pg_try_advisory_xact_lock_shared(line.key) into is_lost
    from graphile_worker._hathi_worker_lines as line
    where line.id = candidate.id and line.lost_at <= now() - grace;
    is_lost := coalesce(is_lost, false);
    is_silent := candidate.beat_at < now() - threshold and coalesce(witnessed >= threshold, true);
    continue when not is_lost and not is_silent;
    perform 1
    from graphile_worker._private_jobs as job
    cross join unnest(resilient_flags) as flag
    where job.locked_by = candidate.id
      and job.flags ? flag
      and job.flags -> flag not in ('false'::jsonb, 'null'::jsonb, '0'::jsonb, '""'::jsonb)
    limit 1;
    if found and (candidate.beat_at >= now() - threshold * resilience or witnessed < threshold * resilience) then
      -- From here on only its heartbeats count; it takes its line up again when it comes back.
      delete from graphile_worker._hathi_worker_lines where id = candidate.id;
      continue;
    end if;
    worker_id := candidate.id;
    reason := case when is_lost then 'lost' else 'silent' end;
    last_heartbeat_at := candidate.beat_at;
    metadata := candidate.metadata;
    return next;
  end loop;

  if with_orphans then
    return query
      select orphan.worker_id, 'orphan', null::timestamptz, null::jsonb
      from graphile_worker.list_orphan_locked_workers(threshold) as orphan;
  end if;
end;
$hathi$;

create function graphile_worker._hathi_find_history(ids bigint[])
 RETURNS TABLE(job_id bigint, task_identifier text, queue_name text, key text, attempt integer, max_attempts integer, outcome text, settled_at timestamp with time zone, entry bigint, wait_ms integer, run_ms integer, worker_id text, error text, error_class text, fingerprint text, stack text, created_at timestamp with time zone, payload json, result json)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_find_limit(name text, with_key boolean, kind text, path text[])
 RETURNS integer
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  found_ids integer[];
  described text;
begin
  select array_agg(bound.id), string_agg(
    format('%s of %s %L%s', bound.kind, bound.scope, bound.name,
      case when bound.path = '{}' then '' else ' by ' || array_to_string(bound.path, '.') end), '; ' order by bound.id
  ) into found_ids, described
  from graphile_worker._hathi_limits as bound
  where bound.name = _hathi_find_limit.name
    and (_hathi_find_limit.kind is null or bound.kind = _hathi_find_limit.kind)
    and case when _hathi_find_limit.path is null then (bound.path <> '{}') = with_key else bound.path = _hathi_find_limit.path end
    and exists (select from graphile_worker._hathi_limited_tasks as member where bound.id = any (member.limit_ids));
  if cardinality(found_ids) > 1 then
    raise exception 'Several limits are called ''%'': %.', _hathi_find_limit.name, described
      using errcode = '22023', hint = 'Say which one with its kind (concurrency, rate or fair) or the path of its key.';
  end if;
  return found_ids[1];
end;
$hathi$;

create function graphile_worker._hathi_find_links(id bigint, size integer)
 RETURNS TABLE(is_child boolean, job_id bigint)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_find_turns(task_id integer, path text[], limit_ids integer[], level smallint, wanted integer, most integer, from_key text, from_used integer, forbidden text[], accepted text[], instant timestamp with time zone, moment timestamp with time zone, horizon timestamp with time zone, OUT rows tid[], OUT keys text[], OUT useds integer[], OUT release_at timestamp with time zone, OUT is_unfinished boolean, OUT last_key text, OUT is_contended boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  max_visits constant integer := 1000;
  -- The condition on the task is spelt so that these indexes only can be used; the planner knows too little about keys to prefer them.
  is_indexed boolean;
  counts_text text := '';
  key_text text;
  suits text;
  free_text text := '1000000';
  release_text text := 'null::timestamptz';
  weight_text text := '1';
  walk_text text;
  bound record;
  upto text := '>';
  visited record;
  k_keys text[] := '{}';
  k_frees integer[] := '{}';
  k_shares integer[] := '{}';
  k_weights integer[] := '{}';
  visits integer := 0;
  total bigint := 0;
  growth integer;
begin
  is_unfinished := false;
  is_contended := false;
  is_indexed := graphile_worker._hathi_has_limit_index('w', task_id, path) and not exists (
    select from graphile_worker._hathi_limits as l
    join graphile_worker._hathi_limited_tasks as member on l.id = any (member.limit_ids)
    join graphile_worker._private_tasks as task on task.identifier = member.task
    where l.id = any (_hathi_find_turns.limit_ids) and l.kind = 'concurrency' and l.path = _hathi_find_turns.path
      and not graphile_worker._hathi_has_limit_index('r', task.id, l.path)
  );
  key_text := replace(
    $sql$ graphile_worker._hathi_limit_key(job.payload, {path}::text[]) collate "C" $sql$, '{path}', quote_literal(path::text)
  );
  for bound in
    select l.id, l.kind, coalesce(o.places, l.places) as places, coalesce(o.weight, l.weight) as weight, l.weight_path,
      coalesce(o.period_ms, l.period_ms) as period_ms,
      array(
        select task.id from graphile_worker._hathi_limited_tasks as member
        join graphile_worker._private_tasks as task on task.identifier = member.task
        where l.id = any (member.limit_ids)
      ) as tasks
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    where l.id = any (limit_ids) and l.path = _hathi_find_turns.path
    order by l.id desc
  loop
    release_text := release_text || replace($sql$, (
      select h.until from graphile_worker._hathi_limit_holds as h
      where h.limit_id = {id} and h.key = next.key and h.until > $7
    )$sql$, '{id}', bound.id::text);
    if bound.kind = 'concurrency' then
      free_text := free_text || replace(replace($sql$,
        coalesce((
          select o.places from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
        ), {places})$sql$, '{id}', bound.id::text), '{places}', bound.places::text);
      if not is_indexed then
        counts_text := counts_text || replace(replace(replace($sql$
          taken_{id} as materialized (
            select {key} as key, count(*)::integer as jobs
            from graphile_worker._private_jobs as job
            where job.task_id = any ({tasks}::integer[]) and job.locked_at is not null
            group by 1
          ),$sql$, '{id}', bound.id::text), '{tasks}', quote_literal(bound.tasks::text)), '{key}', key_text);
        free_text := free_text || replace(
          ' - coalesce((select taken.jobs from taken_{id} as taken where taken.key = next.key), 0)', '{id}', bound.id::text
        );
        continue;
      end if;
      for nth in 1 .. cardinality(bound.tasks) loop
        free_text := free_text || replace(replace($sql$ - (
          select count(*)::integer from graphile_worker._private_jobs as job
          where job.task_id + 0 = {task} and job.locked_at is not null and {key} = next.key
        )$sql$, '{task}', bound.tasks[nth]::text), '{key}', key_text);
      end loop;
    elsif bound.kind = 'rate' then
      release_text := release_text || replace(replace($sql$, (
        select r.free_at from graphile_worker._hathi_limit_rates as r
        where r.limit_id = {id} and r.key = next.key and r.free_at > $6
          and r.free_at < $6 + interval '2 milliseconds' * coalesce((
            select o.period_ms from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
          ), {period})
      )$sql$, '{id}', bound.id::text), '{period}', bound.period_ms::text);
    end if;
    if bound.weight <> 1 or bound.weight_path is not null or weight_text = '1' then
      weight_text := coalesce(
        replace(
          'graphile_worker._hathi_limit_number(next.payload, {path}::text[], 1000)', '{path}', quote_literal(bound.weight_path::text)
        ),
        bound.weight::text
      );
      weight_text := replace(replace($sql$coalesce((
        select o.weight from graphile_worker._hathi_limit_overrides as o where o.limit_id = {id} and o.key = next.key
      ), {weight})$sql$, '{id}', bound.id::text), '{weight}', weight_text);
    end if;
  end loop;
  suits := replace(replace($sql$
    {of_task} = {task}
      and job.locked_at is null
      and job.attempts < job.max_attempts
      and job.job_queue_id is null
      and job.priority = $1
      and ($8::text[] is null or (job.flags ?| $8::text[]) is not true)
      and ($9::text[] is null or (job.flags ?| $9::text[]) is true)$sql$, '{task}', task_id::text),
    '{of_task}', case when is_indexed then 'job.task_id + 0' else 'job.task_id' end);

  if not is_indexed then
    -- The index is being built: the first jobs in line, as far as the limits of their keys go.
    execute replace(replace(replace(replace(replace($sql$
      with {counts} head as materialized (
        select job.ctid as tid, {key} as key, job.run_at, job.id, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and job.run_at <= $5
        order by job.run_at, job.id
        limit $3 + 200
        for update skip locked
      ), ranked as materialized (
        select head.tid, head.key, head.run_at, head.id, room.free,
          row_number() over (partition by head.key order by head.run_at, head.id) as nth
        from head
        join (
          select next.key, case when greatest({release}) is null then least({free}) else 0 end as free
          from (select head.key, min(head.run_at) as run_at, null::json as payload from head group by head.key) as next
        ) as room on room.key = head.key
      )
      select coalesce(array_agg(first.tid), '{}'), coalesce(array_agg(first.key), '{}'),
        coalesce(array_agg(1), '{}')
      from (
        select ranked.tid, ranked.key from ranked where ranked.nth <= ranked.free order by ranked.run_at, ranked.id limit $3
      ) as first
      where $2::integer is not null and $4::text is null
    $sql$, '{suits}', suits), '{release}', release_text), '{free}', free_text), '{key}', key_text), '{counts}', counts_text)
    into rows, keys, useds
    using level, wanted, least(wanted, most), null::text, instant, horizon, moment, forbidden, accepted;
    release_at := clock_timestamp() + interval '500 milliseconds';
    return;
  end if;

  walk_text := replace(replace(replace(replace(replace($sql$
    with recursive walk as (
      select 0 as nth, $2::text collate "C" as key, coalesce(room.free, 0) as free,
        greatest(coalesce(room.weight, 1) - $10::integer, 0) as share, coalesce(room.weight, 1) as weight,
        coalesce(least(room.free, greatest(room.weight - $10::integer, 0)), 0)::bigint as total, room.release_at
      from (select 1) as one
      left join lateral (
        select {key} as key, job.run_at, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and {key} = $2
        order by job.run_at, job.id
        limit 1
      ) as next on true
      left join lateral ({room}) as room on next.key is not null
      union all
      select walk.nth + 1, next.key, room.free, room.weight, room.weight, walk.total + least(room.free, room.weight), room.release_at
      from walk
      cross join lateral (
        select {key} as key, job.run_at, job.payload
        from graphile_worker._private_jobs as job
        where {suits} and {key} > walk.key and {key} < $4
        order by {key}, job.run_at, job.id
        limit 1
      ) as next
      cross join lateral ({room}) as room
      where walk.total < $3 and walk.nth < $11
    )
    select
      coalesce(array_agg(walk.key order by walk.nth) filter (where walk.free > 0), '{}') as keys,
      coalesce(array_agg(walk.free order by walk.nth) filter (where walk.free > 0), '{}') as frees,
      coalesce(array_agg(walk.share order by walk.nth) filter (where walk.free > 0), '{}') as shares,
      coalesce(array_agg(walk.weight order by walk.nth) filter (where walk.free > 0), '{}') as weights,
      min(walk.release_at) as release_at,
      max(walk.nth) as visits,
      max(walk.total) as total,
      (array_agg(walk.key order by walk.nth desc))[1] as last_key
    from walk
  $sql$, '{room}', $sql$
    select
      case when next.run_at > $5 or greatest({release}) is not null then 0 else greatest(0, least({free})) end as free,
      {weight} as weight,
      case
        when next.run_at > $5 then $7 + (least(next.run_at, $5 + interval '1 day') - $5)
        else greatest({release})
      end as release_at
  $sql$), '{suits}', suits), '{release}', release_text), '{free}', free_text), '{weight}', weight_text);
  walk_text := replace(walk_text, '{key}', key_text);

  -- From where the last visit ended to the end of the keys, and then those before.
  for part in 1 .. 2 loop
    execute walk_text into visited
    using level, case part when 1 then from_key else '' end, most - total, upto, instant, horizon, moment, forbidden, accepted,
      case part when 1 then from_used else 0 end, max_visits - visits;
    k_keys := k_keys || visited.keys;
    k_frees := k_frees || visited.frees;
    k_shares := k_shares || visited.shares;
    k_weights := k_weights || visited.weights;
    release_at := least(release_at, visited.release_at);
    visits := visits + visited.visits;
    total := total + visited.total;
    last_key := visited.last_key;
    is_unfinished := visits >= max_visits and total < most;
    exit when total >= most or visits >= max_visits or from_key = '';
    upto := from_key;
  end loop;
  if k_keys = '{}' then
    rows := '{}';
    return;
  end if;

  growth := greatest(0, ceil((most - total)::numeric / greatest(1, (select sum(weight) from unnest(k_weights) as weight))));
  if total < most then
    growth := greatest(growth, 1);
  end if;
  execute replace(replace($sql$
    with line as materialized (
      select turn.nth as turn, turn.key, turn.free, turn.share, turn.weight, job.tid,
        row_number() over (partition by turn.nth order by job.run_at, job.id)::integer as nth
      from unnest($2::text[], $3::integer[], $4::integer[], $5::integer[]) with ordinality as turn (key, free, share, weight, nth)
      cross join lateral (
        select job.ctid as tid, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where {suits} and {key} = turn.key and job.run_at <= $7
        order by job.run_at, job.id
        limit least(turn.free, turn.share + turn.weight * $6)
        for update skip locked
      ) as job
    )
    select coalesce(array_agg(ranked.tid), '{}'), coalesce(array_agg(ranked.key), '{}'), coalesce(array_agg(ranked.used), '{}')
    from (
      select ordered.tid, ordered.key, ordered.used
      from (
        select line.tid, line.key, line.free, line.nth,
          case when line.nth <= line.share then line.weight - line.share + line.nth else (line.nth - line.share - 1) % line.weight + 1 end as used,
          row_number() over (
            order by (greatest(line.nth - line.share, 0) + line.weight - 1) / line.weight, line.turn, line.nth
          ) as place
        from line
      ) as ordered
      where ordered.place <= $10 or ordered.nth * 2 <= ordered.free
      order by ordered.place
      limit $11
    ) as ranked
  $sql$, '{suits}', suits), '{key}', key_text)
  into rows, keys, useds
  using level, k_keys, k_frees, k_shares, k_weights, growth, instant, forbidden, accepted, wanted, most;
  is_contended := rows = '{}' and most > 0 and wanted > 0;
end;
$hathi$;

create function graphile_worker._hathi_flags(flags text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  if exists (select from unnest(flags) as flag where flag is null) then
    raise exception 'Job flags must not contain null.'
      using errcode = '22023', hint = 'Leave the element out of the array.';
  end if;
  return (select jsonb_object_agg(flag, true) from unnest(flags) as flag);
end;
$hathi$;

create function graphile_worker._hathi_free_keys(keys text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_free_rated_suspects(task_ids integer[])
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  late record;
  freed integer[] := '{}';
begin
  for late in
    select job.id, job.task_id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
      and crash.release_at <= now()
      and job.task_id = any (graphile_worker._hathi_rated_tasks(task_ids))
      and not exists (
        select from graphile_worker._hathi_job_crashes as other
        join graphile_worker._private_jobs as its on its.id = other.job_id
        where its.task_id = job.task_id
          and (
            its.locked_at is null and its.attempts = other.attempt - 1 and its.attempts < its.max_attempts and its.run_at <= now()
            or its.locked_by <> 'hathi-recovery' and its.attempts = other.attempt
              and its.locked_at > now() - graphile_worker._hathi_probation(other.deaths)
          )
      )
    order by crash.crashes desc, job.priority, job.run_at, job.id
    for update of job skip locked
  loop
    continue when late.task_id = any (freed);
    if late.job_queue_id is not null then
      perform 1 from graphile_worker._private_job_queues as queue where queue.id = late.job_queue_id for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = null, locked_at = null
      where queue.id = late.job_queue_id and queue.locked_by = 'hathi-recovery';
    end if;
    update graphile_worker._private_jobs as job set locked_by = null, locked_at = null where job.id = late.id;
    freed := freed || late.task_id;
  end loop;
  return cardinality(freed);
end;
$hathi$;

create function graphile_worker._hathi_has_limit_index(kind text, task_id integer, path text[])
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select exists (
    select from pg_catalog.pg_class as class
    join pg_catalog.pg_index as index on index.indexrelid = class.oid
    where class.relname = graphile_worker._hathi_limit_index(kind, task_id, path)
      and index.indisvalid
      and class.relnamespace = (
        select home.relnamespace from pg_catalog.pg_class as home
        where home.oid = (select bound.tableoid from graphile_worker._hathi_limits as bound limit 1)
      )
  );
$hathi$;

create function graphile_worker._hathi_have_tokens(limit_ids integer[], jobs integer, moment timestamp with time zone)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return (
    select coalesce(bool_and(
      coalesce(graphile_worker._hathi_spare_tokens(l.id, 0, 1000000, moment, 0), 0) >= greatest(100, jobs * 2)
    ), true)
    from graphile_worker._hathi_limits as l
    where l.id = any (limit_ids) and l.kind = 'rate'
  );
end;
$hathi$;

create function graphile_worker._hathi_hold_limits(pool_id text, job_ids bigint[], delays double precision[], names text[], reasons text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
#variable_conflict use_column
declare
  job record;
  bound_id integer;
  whose text;
begin
  for job in
    select row.id, row.payload, task.identifier, asked.delay, asked.name, asked.reason
    from unnest(job_ids, delays, names, reasons) as asked (id, delay, name, reason)
    join graphile_worker._private_jobs as row on row.id = asked.id and row.locked_by = pool_id
    join graphile_worker._private_tasks as task on task.id = row.task_id
    order by row.id
  loop
    select bound.id, case
        when bound.path = '{}' or job.name is not null and bound.scope = 'shared' and bound.path = '{}' then '*'
        else graphile_worker._hathi_limit_key(job.payload, bound.path)
      end
    into bound_id, whose
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where member.task = job.identifier and (job.name is null or bound.name = job.name)
    order by bound.kind <> 'rate', bound.path = '{}', bound.id
    limit 1;
    if not found then
      insert into graphile_worker._hathi_limits (scope, name, kind, origin)
      values ('task', job.identifier, 'fair', 'set')
      on conflict (scope, name, kind, path) do update set origin = 'set'
      returning id into bound_id;
      whose := '*';
      insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
      values (job.identifier, array[bound_id])
      on conflict (task) do update set limit_ids = array(
        select distinct id from unnest(member.limit_ids || excluded.limit_ids) as id order by 1
      );
    end if;
    insert into graphile_worker._hathi_limit_holds as old (limit_id, key, until, reason)
    values (bound_id, whose, now() + job.delay * interval '1 millisecond', left(job.reason, 500))
    on conflict (limit_id, key) do update set until = greatest(old.until, excluded.until), reason = excluded.reason;
  end loop;
  perform pg_notify('hathi:limits', 'changed');
end;
$hathi$;

create function graphile_worker._hathi_is_beating(last_heartbeat_at timestamp with time zone)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select last_heartbeat_at > now() - interval '5 minutes';
$hathi$;

create function graphile_worker._hathi_keep_crashed(job_ids bigint[], tries integer[], waits double precision[], runs double precision[], worker_ids text[], classes text[], fingerprints text[], kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_keep_ended(pool_id text, before graphile_worker._private_jobs[], job_ids bigint[], tries integer[], rulings text[], errors text[], runs integer[], classes text[], fingerprints text[], stacks text[], kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
AS $hathi$
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

create function graphile_worker._hathi_keep_pause()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  perform 1 from graphile_worker._hathi_pauses as pause
  where pause.kind = 'queue' and pause.name = old.queue_name and pause.until > now();
  if found then
    new.locked_at := 'infinity';
    new.locked_by := coalesce(new.locked_by, 'hathi:paused');
  end if;
  return new;
end;
$hathi$;

create function graphile_worker._hathi_keep_queues(names text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_keep_tasks(names text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_limit_index(kind text, task_id integer, path text[])
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select '_hathi_limit_' || kind || '_' || task_id || '_' || to_hex(hashtextextended(path::text, 0));
$hathi$;

create function graphile_worker._hathi_limit_indexes()
 RETURNS TABLE(name text, kind text, task_id integer, task text, path text[], path_literal text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select graphile_worker._hathi_limit_index(wanted.kind, wanted.id, wanted.path), wanted.kind, wanted.id, wanted.task, wanted.path,
    quote_literal(wanted.path::text)
  from (
    select distinct 'r' as kind, task.id, task.identifier as task, bound.path
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._private_tasks as task on task.identifier = member.task
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where bound.kind = 'concurrency'
    union
    select distinct 'w', task.id, task.identifier, bound.path
    from graphile_worker._hathi_limited_tasks as member
    join graphile_worker._private_tasks as task on task.identifier = member.task
    join graphile_worker._hathi_limits as bound on bound.id = any (member.limit_ids)
    where bound.path <> '{}'
  ) as wanted;
$hathi$;

create function graphile_worker._hathi_limit_key(payload json, path text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  value text;
begin
  if strpos(payload::text, E'\\u') = 0 then
    value := (payload #> path)::text;
  else
    value := graphile_worker._hathi_limit_part(payload, path);
  end if;
  if value is null or value = 'null' or value = '""' then
    return '-';
  end if;
  if left(value, 1) = '"' then
    if strpos(value, E'\\') = 0 then
      value := substr(value, 2, length(value) - 2);
    else
      begin
        value := value::json #>> '{}';
      exception when others then
        null;
      end;
    end if;
  end if;
  if length(value) > 120 then
    return '=' || left(value, 80) || '#' || to_hex(hashtextextended(value, 0));
  end if;
  return '=' || value;
end;
$hathi$;

create function graphile_worker._hathi_limit_number(payload json, path text[], most integer)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  value constant text := graphile_worker._hathi_limit_part(payload, path);
begin
  if value is null or value !~ '^[0-9]{1,9}([.][0-9]+)?$' then
    return 1;
  end if;
  return greatest(1, least(most, ceil(value::numeric)::integer));
end;
$hathi$;

create function graphile_worker._hathi_limit_part(payload json, path text[])
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  if strpos(payload::text, E'\\u') = 0 then
    return (payload #> path)::text;
  end if;
  begin
    return (payload #> path)::text;
  exception when others then
    null;
  end;
  begin
    return (regexp_replace(payload::text, E'(?<!\\\\)((?:\\\\\\\\)*)\\\\u(0000|[dD][89abAB][[:xdigit:]]{2}(?!\\\\u[dD][c-fC-F])|(?<!\\\\u[dD][89abAB][[:xdigit:]]{2}\\\\u)[dD][c-fC-F])',
      E'\\1\\\\\\\\u\\2', 'g')::json #> path)::text;
  exception when others then
    return null;
  end;
end;
$hathi$;

create function graphile_worker._hathi_link_jobs(parent_ids bigint[], child_ids bigint[], kept_days integer[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_list_history(task text, queue text, job_key text, outcomes text[], print text, since timestamp with time zone, until timestamp with time zone, after_at timestamp with time zone, after_entry bigint, after_id bigint, size integer)
 RETURNS TABLE(job_id bigint, task_identifier text, queue_name text, key text, attempt integer, max_attempts integer, outcome text, settled_at timestamp with time zone, entry bigint, wait_ms integer, run_ms integer, worker_id text, error text, error_class text, fingerprint text)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_custom_plan'
AS $hathi$
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

create function graphile_worker._hathi_lock_guard(wanted_task text, wanted_kind text, wanted_key text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_lock_limits(limit_ids integer[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
begin
  perform 1 from graphile_worker._hathi_limits as bound where bound.id = any (limit_ids) order by bound.id for update;
  -- The snapshot of a stricter isolation level is older than the lock; only a write makes such a claim fail.
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    update graphile_worker._hathi_limits as bound set claims = (bound.claims + 1) % 1000000 where bound.id = any (limit_ids);
  end if;
  return true;
exception when lock_not_available then
  return false;
end;
$hathi$;

create function graphile_worker._hathi_lock_queues(candidates integer[], shares integer[], wanted integer, per_queue integer, task_ids integer[], forbidden text[], accepted text[], instant timestamp with time zone, OUT rows tid[], OUT queue_ids integer[], OUT priorities smallint[], OUT run_ats timestamp with time zone[], OUT ids bigint[], OUT contended boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  tried integer := 0;
  room integer := wanted;
  locked record;
  tasks integer[];
  growth integer;
  mine integer[] := '{}';
  piece record;
begin
  rows := '{}';
  queue_ids := '{}';
  priorities := '{}';
  run_ats := '{}';
  ids := '{}';
  contended := false;

  while room > 0 and tried < cardinality(candidates) loop
    select coalesce(array_agg(free.id), '{}') as ids, coalesce(array_agg(free.share), '{}') as shares into locked
    from (
      select queue.id, candidate.share
      from unnest(candidates[tried + 1:tried + room], shares[tried + 1:tried + room]) as candidate (id, share)
      join graphile_worker._private_job_queues as queue on queue.id = candidate.id
      where queue.is_available
      -- An open transaction that has added a job to the queue has a key-share lock on its row, which must not stop us.
      for no key update of queue skip locked
    ) as free;
    tried := tried + room;
    mine := mine || locked.ids;
    -- After the lock, too: a task may have had no job in any queue until one came back.
    tasks := case when cardinality(task_ids) > 1 then graphile_worker._hathi_tasks_in_queues(task_ids) else task_ids end;

    growth := 1;
    loop
      with head as materialized (
        select queue.id as queue_id, least(queue.share::bigint * growth, per_queue) as share, job.*
        from unnest(locked.ids, locked.shares) as queue (id, share)
        cross join lateral (
          select line.tid, line.priority, line.run_at, line.id,
            row_number() over (order by line.priority, line.run_at, line.id) as nth
          from unnest(tasks) as task (id)
          cross join lateral (
            select own.ctid as tid, own.priority, own.run_at, own.id
            from graphile_worker._private_jobs as own
            where own.is_available
              and own.task_id = task.id
              and own.job_queue_id = queue.id
              and own.run_at <= instant
              and (forbidden is null or (own.flags ?| forbidden) is not true)
              and (accepted is null or (own.flags ?| accepted) is true)
            order by own.priority, own.run_at, own.id
            limit least(queue.share::bigint * growth, per_queue)
          ) as line
          order by line.priority, line.run_at, line.id
          limit least(queue.share::bigint * growth, per_queue)
        ) as job
      ), taken as materialized (
        -- All conditions again, since a row may have changed after it was read. `is_available` is spelt out, so that no partial index
        -- looks like a better way to the rows than their addresses.
        select candidate.ctid as tid, head.queue_id, head.priority, head.run_at, head.id, head.nth
        from head
        join graphile_worker._private_jobs as candidate
          on candidate.ctid = head.tid
          and candidate.id = head.id
          and candidate.job_queue_id = head.queue_id
        where candidate.locked_at is null
          and candidate.attempts + 0 < candidate.max_attempts
          and candidate.run_at <= instant
          and candidate.task_id = any (task_ids)
          and (forbidden is null or (candidate.flags ?| forbidden) is not true)
          and (accepted is null or (candidate.flags ?| accepted) is true)
        for update of candidate skip locked
      )
      select
        coalesce(array_agg(line.tid), '{}') as rows,
        coalesce(array_agg(line.queue_id), '{}') as queue_ids,
        coalesce(array_agg(line.priority), '{}') as priorities,
        coalesce(array_agg(line.run_at), '{}') as run_ats,
        coalesce(array_agg(line.id), '{}') as ids,
        (select count(*) from head) > count(*) as has_missed,
        exists (select from head where head.nth = head.share and head.share < per_queue) as may_have_more
      into piece
      from (
        select taken.*, row_number() over (partition by taken.queue_id order by taken.nth) as place
        from taken
      ) as line
      -- A job that could not be locked stops those behind it in its queue.
      where line.place = line.nth;
      exit when cardinality(piece.rows) >= room or not piece.may_have_more;
      growth := growth * 4;
    end loop;

    rows := rows || piece.rows;
    queue_ids := queue_ids || piece.queue_ids;
    priorities := priorities || piece.priorities;
    run_ats := run_ats || piece.run_ats;
    ids := ids || piece.ids;
    contended := contended or piece.has_missed;
    room := wanted - cardinality(rows);
  end loop;

  if room > 0 and not contended and cardinality(mine) < cardinality(candidates) then
    contended := exists (
      select from graphile_worker._private_job_queues as queue
      where queue.id = any (candidates) and queue.is_available and queue.id <> all (mine)
    );
  end if;
end;
$hathi$;

create function graphile_worker._hathi_look_at_completions(job_ids bigint[], pool_ids text[], tries integer[], transactions xid8[])
 RETURNS TABLE(status text, is_ours boolean)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_merge_payloads(had json, given json)
 RETURNS json
 LANGUAGE sql
 IMMUTABLE
RETURN CASE WHEN ((json_typeof(had) = 'array'::text) AND (json_typeof(given) = 'array'::text)) THEN (((had)::jsonb || (given)::jsonb))::json ELSE given END;

create function graphile_worker._hathi_missing(pool_id text, asked bigint[], done bigint[], OUT lost bigint[], OUT held bigint[])
 RETURNS record
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  if cardinality(asked) = cardinality(done) then
    return;
  end if;
  asked := array(select id from unnest(asked) as id where id <> all (coalesce(done, '{}')));
  select array_agg(job.id) into held from graphile_worker._private_jobs as job where job.id = any (asked) and job.locked_by = pool_id;
  lost := nullif(array(select id from unnest(asked) as id where id <> all (coalesce(held, '{}'))), '{}');
end;
$hathi$;

create function graphile_worker._hathi_next_due(task_ids integer[], forbidden text[], accepted text[], instant timestamp with time zone, levels smallint[], head_run_ats timestamp with time zone[], head_ids bigint[])
 RETURNS timestamp with time zone
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  tasks constant integer[] :=
    case when cardinality(task_ids) > 1 then graphile_worker._hathi_tasks_in_queues(task_ids) else task_ids end;
  due timestamptz;
  level integer := -32769;
  found_due timestamptz;
begin
  select min(first.run_at) into due
  from unnest(levels, head_run_ats, head_ids) as level (priority, run_at, id)
  cross join unnest(task_ids) as task (id)
  cross join lateral (
    select job.run_at
    from graphile_worker._private_jobs as job
    where job.locked_at is null
      and job.attempts < job.max_attempts
      and job.job_queue_id is null
      and job.task_id = task.id
      and job.priority = level.priority
      and (job.run_at, job.id) > (level.run_at, level.id)
      and (forbidden is null or (job.flags ?| forbidden) is not true)
      and (accepted is null or (job.flags ?| accepted) is true)
    order by job.run_at, job.id
    limit 1
  ) as first;

  loop
    select min(first.priority) into level
    from unnest(tasks) as task (id)
    cross join lateral (
      select job.priority
      from graphile_worker._private_jobs as job
      where job.locked_at is null
        and job.attempts < job.max_attempts
        and job.job_queue_id is not null
        and job.task_id = task.id
        and job.priority > level
      order by job.priority
      limit 1
    ) as first;
    exit when level is null;
    select min(first.run_at) into found_due
    from unnest(tasks) as task (id)
    cross join lateral (
      select job.run_at
      from graphile_worker._private_jobs as job
      where job.locked_at is null
        and job.attempts < job.max_attempts
        and job.job_queue_id is not null
        and job.task_id = task.id
        and job.priority = level
        and job.run_at > instant
      order by job.run_at
      limit 1
    ) as first;
    due := least(due, found_due);
  end loop;
  return due;
end;
$hathi$;

create function graphile_worker._hathi_pass_guard(spec graphile_worker._hathi_guarded_spec, moment timestamp with time zone, OUT job graphile_worker._private_jobs, OUT skipped text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_probation(deaths integer)
 RETURNS interval
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select least(interval '4 seconds' * 2 ^ greatest(0, least(deaths, 10) - 1), interval '1 minute');
$hathi$;

create function graphile_worker._hathi_queue_id(wanted text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_rate_grace(burst integer, step double precision, tokens double precision, used_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return case when used_ms <= (burst * 0.9 - tokens) * step then least(150, burst * step / 2, (burst * 0.9 - tokens) * step) end;
end;
$hathi$;

create function graphile_worker._hathi_rate_slack(period_ms double precision)
 RETURNS double precision
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return greatest(5, least(10000, period_ms * 0.04));
end;
$hathi$;

create function graphile_worker._hathi_rated_tasks(task_ids integer[])
 RETURNS integer[]
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select coalesce(array_agg(task.id), '{}')
  from graphile_worker._hathi_limited_tasks as member
  join graphile_worker._private_tasks as task on task.identifier = member.task
  where task.id = any (task_ids)
    and exists (select from graphile_worker._hathi_limits as bound where bound.id = any (member.limit_ids) and bound.kind = 'rate');
$hathi$;

create function graphile_worker._hathi_read_rollup(reader text, max_age_ms integer, warn_after_s double precision, cap integer, max_tasks integer, max_pages integer)
 RETURNS TABLE(data jsonb, age_ms double precision, read_in_ms double precision, to_report jsonb)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_record_times(counted jsonb)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_recover_jobs(worker_ids text[], lost_ids text[], delay interval, max_crashes integer, with_backoff boolean, kept bigint[], pardoned bigint[])
 RETURNS TABLE(job_id bigint, worker_id text, outcome text, attempt integer, wait_ms double precision, run_ms double precision)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
#variable_conflict use_column
declare
  held bigint[];
  parked bigint[] := '{}';
  can_park boolean;
  queues_free integer[];
  queues_kept integer[];
begin
  select array_agg(job.id) into held
  from (
    select id
    from graphile_worker._private_jobs
    where locked_by = any (worker_ids) and id <> all (kept)
    order by id
    for update skip locked
  ) as job;
  select array_agg(queue.id) into queues_free
  from (
    select id
    from graphile_worker._private_job_queues
    where locked_by = any (worker_ids)
    order by id
    for no key update skip locked
  ) as queue;
  -- A job and its queue are recovered together: a worker that is alive after all must find both or neither.
  select array_agg(job.id) into held
  from graphile_worker._private_jobs as job
  left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id and queue.locked_by = job.locked_by
  where job.id = any (held) and (queue.id is null or queue.id = any (queues_free));

  if held is not null then
    can_park := max_crashes is not null and not with_backoff and exists (
      select from graphile_worker._private_workers as heir
      where heir.id <> all (worker_ids) and heir.metadata ? 'migration' and graphile_worker._hathi_is_beating(heir.last_heartbeat_at)
    );

    return query
    with line as (
      select job.id, job.attempts, job.locked_by, job.locked_at, job.job_queue_id, greatest(job.run_at, job.created_at) as due_at,
        -- Forwarded jobs need no proof: what a silent forwarder still sends is a copy with the same id.
        job.locked_by = any (lost_ids) or coalesce(worker.metadata ? 'forwards', false) as is_proven,
        exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id) as is_retired,
        cancellation.job_id is not null as is_cancelled,
        cancellation.attempt as cancelled_attempt,
        crash.job_id is not null as is_known,
        coalesce(crash.deaths, 0) as deaths,
        case when jsonb_typeof(worker.metadata -> 'concurrency') = 'number' then (worker.metadata ->> 'concurrency')::numeric end as slots,
        coalesce(max_crashes is not null and worker.metadata ? 'concurrency' and not worker.metadata ?| array['stopping', 'forwards'], false)
          and job.id <> all (pardoned) as may_accuse,
        -- The loss of a line is noticed a little later than it happens.
        greatest(worker.last_heartbeat_at, max(job.locked_at) over (partition by job.locked_by), line.lost_at - interval '3 seconds')
          - job.locked_at as ran_for,
        row_number() over (
          partition by job.locked_by, coalesce(job.job_queue_id, -job.id), queue.locked_by = job.locked_by
          order by job.locked_at, job.priority, job.run_at, job.id
        ) as nth_of_queue,
        -- Its queue was released: its run was over, only its row could not be written because another transaction held it.
        job.job_queue_id is not null and queue.locked_by is distinct from job.locked_by as has_ended,
        row(job.locked_at, job.priority, job.run_at, job.id) as place
      from graphile_worker._private_jobs as job
      left join graphile_worker._private_workers as worker on worker.id = job.locked_by
      left join graphile_worker._hathi_worker_lines as line on line.id = worker.id and job.locked_by = any (lost_ids)
      left join graphile_worker._private_job_queues as queue on queue.id = job.job_queue_id
      left join graphile_worker._hathi_job_crashes as crash on crash.job_id = job.id and crash.attempt = job.attempts
      left join graphile_worker._hathi_job_cancellations as cancellation on cancellation.job_id = job.id and cancellation.outcome is null
      -- Also what is left for a later sweep: it had its place in a slot and in front of its queue.
      where job.locked_by = any (worker_ids)
    ), ranked as (
      select line.*,
        not line.has_ended and line.nth_of_queue = 1 and (
          line.slots is null
          or line.slots >= row_number() over (
            partition by line.locked_by order by line.has_ended or line.nth_of_queue > 1, not line.is_known, line.place
          )
        ) as is_started,
        line.is_known and line.ran_for <= graphile_worker._hathi_probation(line.deaths) as is_on_probation
      from line
    ), accused as (
      select ranked.*,
        ranked.is_started and ranked.may_accuse
          and ranked.ran_for <= case when ranked.is_known then graphile_worker._hathi_probation(ranked.deaths) else interval '1 minute' end
          and 1 = case
            when bool_or(ranked.is_on_probation and ranked.is_started) over by_worker
              then count(*) filter (where ranked.is_on_probation and ranked.is_started) over by_worker
            else count(*) filter (where ranked.is_started) over by_worker
          end
          and (ranked.is_on_probation or not coalesce(bool_or(ranked.is_on_probation and ranked.is_started) over by_worker, false))
          as is_sole -- null if nothing is known of the worker
      from ranked
      window by_worker as (partition by ranked.locked_by)
    ), noted as (
      insert into graphile_worker._hathi_job_crashes as crash (job_id, attempt, crashes, deaths, since, release_at)
      select accused.id, accused.attempts, coalesce(accused.is_sole, false)::integer, 1, now(),
        now() + case when accused.is_proven and not accused.is_known then interval '0' else delay end
      from accused
      where accused.is_started and not accused.is_retired and not with_backoff and max_crashes is not null
        and accused.id = any (held) and accused.id <> all (pardoned)
        and (accused.may_accuse or not accused.is_proven)
      on conflict (job_id) do update set
        attempt = excluded.attempt,
        crashes = case when crash.attempt = excluded.attempt and excluded.crashes = 1 then crash.crashes + 1 else excluded.crashes end,
        deaths = case when crash.attempt = excluded.attempt then crash.deaths + 1 else 1 end,
        since = case when crash.attempt = excluded.attempt then crash.since else excluded.since end,
        release_at = excluded.release_at
      returning crash.job_id, crash.release_at,
        crash.crashes > 0 and crash.crashes >= max_crashes + least(2 * max_crashes, greatest(0, 1 - crash.deaths + (
          select count(*) from graphile_worker._hathi_former_workers as former where former.is_dead and former.left_at >= crash.since
        ))) as is_guilty
    ), judged as (
      select accused.*,
        coalesce(noted.is_guilty, false) as is_guilty,
        can_park and noted.job_id is not null and not noted.is_guilty as is_parked,
        with_backoff and accused.is_started and not accused.is_retired and accused.id <> all (pardoned) as has_failed,
        case when accused.is_started and not accused.is_proven then delay when noted.release_at > now() then delay end as rest
      from accused
      left join noted on noted.job_id = accused.id
      where accused.id = any (held)
    )
    update graphile_worker._private_jobs as job
    set
      attempts = case
        when judged.is_retired or judged.has_failed then job.attempts
        when judged.is_guilty then job.max_attempts
        else greatest(0, job.attempts - 1)
      end,
      run_at = case
        when judged.has_failed then greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second'
        when judged.is_parked or judged.rest is null or judged.rest = interval '0' then job.run_at
        else greatest(job.run_at, now() + judged.rest)
      end,
      last_error = case
        when judged.is_guilty then format(
          'WorkerCrashed: the worker died while this job was running alone under suspicion, %s times in a row. The job has failed permanently, so '
            || 'that it cannot take more workers down; find the cause, then reschedule it.', max_crashes)
        when judged.has_failed or judged.is_cancelled and judged.is_started then 'WorkerCrashed: the worker died while this job was running.'
        when judged.is_started then 'Job recovered after worker interruption'
        else job.last_error
      end,
      updated_at = now(),
      locked_by = case when judged.is_parked then 'hathi-recovery' end,
      locked_at = case when judged.is_parked then now() end
    from judged
    where job.id = judged.id
    returning job.id, judged.locked_by,
      case
        when judged.is_guilty then 'suspect'
        when judged.has_failed then 'failed'
        when judged.is_parked then 'parked'
        when judged.is_cancelled and judged.is_started then 'cancelled'
        else 'recovered'
      end,
      coalesce(judged.cancelled_attempt, judged.attempts)::integer, date_part('epoch', judged.locked_at - judged.due_at) * 1000, date_part('epoch', judged.ran_for) * 1000;

    -- What failed permanently starts from nought if it is rescheduled. What was cancelled or replaced while it was parked is still to be freed.
    delete from graphile_worker._hathi_job_crashes as crash
    where not exists (
      select from graphile_worker._private_jobs as job
      where job.id = crash.job_id and (job.attempts < job.max_attempts or job.locked_by = 'hathi-recovery')
    );
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(held) || '}');
  end if;

  queues_kept := array(
    select job.job_queue_id
    from graphile_worker._private_jobs as job
    where job.locked_by = any (worker_ids) and job.job_queue_id is not null
  );
  update graphile_worker._private_job_queues as queue
  set locked_by = free.heir, locked_at = case when free.heir is not null then now() end
  from (
    select locked.id, (
      select 'hathi-recovery'
      from graphile_worker._hathi_job_crashes as crash
      join graphile_worker._private_jobs as job on job.id = crash.job_id
      where job.job_queue_id = locked.id and job.locked_by = 'hathi-recovery'
      limit 1
    ) as heir
    from unnest(queues_free) as locked (id)
    where locked.id <> all (queues_kept)
  ) as free
  where queue.id = free.id;
end;
$hathi$;

create function graphile_worker._hathi_redact(payload json, patterns text[])
 RETURNS json
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_redact_below(value jsonb, patterns text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_redact_member(key text, value jsonb, patterns text[])
 RETURNS jsonb
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_refresh_locks(pool_id text, job_ids bigint[], queue_ids integer[], clock timestamp with time zone)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
  with mine as (
    select id
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  )
  update graphile_worker._private_jobs
  set locked_at = coalesce(clock, now())
  where id in (select id from mine);
  with mine as (
    select id
    from graphile_worker._private_job_queues
    where id = any (queue_ids) and locked_by = pool_id
    order by id
    for no key update skip locked
  )
  update graphile_worker._private_job_queues
  set locked_at = coalesce(clock, now())
  where id in (select id from mine);
$hathi$;

create function graphile_worker._hathi_register_tasks(names text[])
 RETURNS TABLE(id integer, identifier text)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  name text;
begin
  for name in
    select wanted.name
    from unnest(names) as wanted (name)
    where not exists (select from graphile_worker._private_tasks as task where task.identifier = wanted.name)
    order by wanted.name
  loop
    begin
      insert into graphile_worker._private_tasks (identifier) values (name) on conflict do nothing;
    exception
      when lock_not_available then null;
    end;
  end loop;
  return query select task.id, task.identifier from graphile_worker._private_tasks as task where task.identifier = any (names);
end;
$hathi$;

create function graphile_worker._hathi_release_queues(pool_id text, queue_ids integer[], ended_ids bigint[], in_doubt boolean)
 RETURNS integer[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  mine integer[];
  kept integer[] := '{}';
begin
  if queue_ids is null then
    return null;
  end if;
  select coalesce(array_agg(queue.id), '{}') into mine
  from (
    select id
    from graphile_worker._private_job_queues
    where id = any (queue_ids) and locked_by = pool_id
    order by id
    for no key update skip locked
  ) as queue;
  -- After the lock, which a claim of these queues would need, too.
  if in_doubt then
    kept := array(
      select job.job_queue_id
      from graphile_worker._private_jobs as job
      where job.job_queue_id = any (mine) and job.locked_by = pool_id and job.id <> all (ended_ids)
    );
  end if;
  update graphile_worker._private_job_queues
  set locked_by = null, locked_at = null
  where id = any (mine) and id <> all (kept);
  if cardinality(mine) = cardinality(queue_ids) then
    return null;
  end if;
  return nullif(array(
    select id from graphile_worker._private_job_queues where id = any (queue_ids) and locked_by = pool_id and id <> all (mine)
  ), '{}');
end;
$hathi$;

create function graphile_worker._hathi_remember_worker()
 RETURNS trigger
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  insert into graphile_worker._hathi_former_workers (id) values (old.id)
  on conflict (id) do update set left_at = now();
  return null;
end;
$hathi$;

create function graphile_worker._hathi_replace_job(identifier text, payload json, queue_name text, run_at timestamp with time zone, max_attempts integer, job_key text, priority integer, flags text[], job_key_mode text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_report_limits(task_ids integer[])
 RETURNS text
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
begin
  return (
    select json_object_agg(task.id, exists (
      select from graphile_worker._hathi_limits as bound where bound.id = any (member.limit_ids) and bound.origin = 'code'
    ))
    from graphile_worker._private_tasks as task
    join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
    where task.id = any (task_ids)
  );
end;
$hathi$;

create function graphile_worker._hathi_report_pauses(worker_names text[], clock timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_reset_locks(clock timestamp with time zone)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
  with old as (
    select id
    from graphile_worker._private_jobs
    where locked_at < coalesce(clock, now()) - interval '4 hours'
    order by id
    for update skip locked
  )
  update graphile_worker._private_jobs as job
  set locked_at = null, locked_by = null, run_at = greatest(job.run_at, coalesce(clock, now()))
  from old
  where job.id = old.id;
  delete from graphile_worker._private_job_retirements as retired
  where not exists (select from graphile_worker._private_jobs as job where job.id = retired.id);
  with old as (
    select id
    from graphile_worker._private_job_queues
    where locked_at < coalesce(clock, now()) - interval '4 hours'
    order by id
    for no key update skip locked
  )
  update graphile_worker._private_job_queues as queue
  set locked_at = null, locked_by = null
  from old
  where queue.id = old.id;
$hathi$;

create function graphile_worker._hathi_return_jobs(pool_id text, job_ids bigint[], tries integer[], queue_ids integer[], ended_ids bigint[], has_started boolean, delay interval, error_message text, OUT lost bigint[], OUT held bigint[], OUT held_queues integer[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  mine bigint[];
  on_tries integer[];
  retired bigint[];
  otherwise bigint[];
begin
  select array_agg(job.id), array_agg(job.attempts::integer) into mine, on_tries
  from (
    select id, attempts
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update skip locked
  ) as job;
  -- After the lock, so that a retirement that has just been committed is seen.
  select array_agg(retirement.id) into retired
  from graphile_worker._private_job_retirements as retirement
  where retirement.id = any (mine);
  if tries is not null then
    select array_agg(its.id) into otherwise
    from unnest(mine, on_tries) as its (id, attempt)
    where (its.id = any (retired)) is not true
      and not exists (
        select from unnest(job_ids, tries) as asked (id, attempt) where asked.id = its.id and asked.attempt >= its.attempt
      );
  end if;
  if otherwise is not null then
    mine := array(select id from unnest(mine) as id where id <> all (otherwise));
  end if;

  if retired is not null and not has_started then
    update graphile_worker._hathi_job_cancellations
    set outcome = 'cancelled', settled_at = now()
    where job_id = any (retired) and outcome is null;
    delete from graphile_worker._private_jobs where id = any (retired);
    delete from graphile_worker._private_job_retirements where id = any (retired);
  end if;
  update graphile_worker._private_jobs as job
  set
    attempts = case when job.id = any (retired) then job.attempts else greatest(0, job.attempts - 1) end,
    run_at = case when delay is null then job.run_at else greatest(job.run_at, now() + delay) end,
    last_error = coalesce(error_message, job.last_error),
    locked_by = null,
    locked_at = null
  where job.id = any (mine);
  if retired is not null then
    perform graphile_worker._hathi_bury_cancelled(retired);
  end if;

  select missing.lost, missing.held into lost, held from graphile_worker._hathi_missing(pool_id, job_ids, mine) as missing;
  -- What we have locked is not held by others.
  if otherwise is not null then
    lost := lost || otherwise;
    held := nullif(array(select id from unnest(held) as id where id <> all (otherwise)), '{}');
  end if;
  -- A queue is not released before all its jobs are back in line, or later ones would overtake them.
  if held is not null and queue_ids is not null then
    queue_ids := array(
      select unnest(queue_ids)
      except
      select job.job_queue_id from graphile_worker._private_jobs as job where job.id = any (held)
    );
  end if;
  held_queues := graphile_worker._hathi_release_queues(pool_id, queue_ids, ended_ids, lost is not null);
  if cardinality(mine) > 0 then
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(mine) || '}');
  end if;
end;
$hathi$;

create function graphile_worker._hathi_rule_jobs(pool_id text, job_ids bigint[], tries integer[], rulings text[], errors text[], payloads text[], delays double precision[], run_ats timestamp with time zone[], caps integer[], tokens text[], queue_ids integer[], ended_ids bigint[], in_doubt boolean, OUT lost bigint[], OUT held bigint[], OUT held_queues integer[], OUT refused bigint[], OUT cancelled bigint[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_hashjoin TO 'on'
 SET enable_nestloop TO 'off'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_rule_jobs_kept(pool_id text, job_ids bigint[], tries integer[], rulings text[], errors text[], payloads text[], delays double precision[], run_ats timestamp with time zone[], caps integer[], tokens text[], queue_ids integer[], ended_ids bigint[], in_doubt boolean, runs integer[], classes text[], fingerprints text[], stacks text[], kept_tasks integer[], kept_as text[], kept_days integer[], are_awaited boolean[], redacted text[], OUT lost bigint[], OUT held bigint[], OUT held_queues integer[], OUT refused bigint[], OUT cancelled bigint[])
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_scan_queues(task_ids integer[], wanted integer, per_queue integer, forbidden text[], accepted text[], instant timestamp with time zone, OUT rows tid[], OUT queue_ids integer[], OUT priorities smallint[], OUT run_ats timestamp with time zone[], OUT ids bigint[], OUT contended boolean)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  tasks constant integer[] :=
    case when cardinality(task_ids) > 1 then graphile_worker._hathi_tasks_in_queues(task_ids) else task_ids end;
  max_read integer := 5000;
  has_read integer := 0;
  has_walked boolean := false;
  level integer := -32769;
  is_level_done boolean := true;
  from_run_at timestamptz;
  from_id bigint;
  share integer;
  piece record;
  candidates integer[];
  shares integer[];
  known integer[] := '{}';
  step record;
begin
  rows := '{}';
  queue_ids := '{}';
  priorities := '{}';
  run_ats := '{}';
  ids := '{}';
  contended := false;

  while cardinality(rows) < wanted and not has_walked loop
    -- Paused queues may have any number of jobs waiting, so the second step is the walk.
    if has_read > 0 and exists (select from graphile_worker._hathi_pauses as pause where pause.kind = 'queue') then
      max_read := 1;
    end if;
    if is_level_done then
      select first.priority, first.run_at, first.id - 1 into level, from_run_at, from_id
      from unnest(tasks) as task (id)
      cross join lateral (
        select job.priority, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where job.locked_at is null
          and job.attempts < job.max_attempts
          and job.job_queue_id is not null
          and job.task_id = task.id
          and job.priority > level
        order by job.priority, job.run_at, job.id
        limit 1
      ) as first
      order by first.priority, first.run_at, first.id
      limit 1;
      exit when not found;
      continue when from_run_at > instant;
    end if;

    share := greatest(greatest(2 * (wanted - cardinality(rows)), has_read, 100) / cardinality(tasks), 10);
    with line as materialized (
      select job.run_at, job.id, job.job_queue_id, job.suits, job.nth
      from unnest(tasks) as task (id)
      cross join lateral (
        select own.run_at, own.id, own.job_queue_id,
          (forbidden is null or (own.flags ?| forbidden) is not true) and (accepted is null or (own.flags ?| accepted) is true) as suits,
          row_number() over (order by own.run_at, own.id) as nth
        from graphile_worker._private_jobs as own
        where own.locked_at is null
          and own.attempts < own.max_attempts
          and own.job_queue_id is not null
          and own.task_id = task.id
          and own.priority = level
          and own.run_at <= instant
          and (own.run_at, own.id) > (from_run_at, from_id)
        order by own.run_at, own.id
        limit share
      ) as job
    ), cut as (
      -- The nearest end of a share that was used up: what lies behind it may not be next.
      select line.run_at, line.id from line where line.nth = share order by line.run_at, line.id limit 1
    )
    select
      (select count(*) from line) as count,
      (select cut.run_at from cut) as cut_run_at,
      (select cut.id from cut) as cut_id,
      array(
        select line.job_queue_id
        from line
        left join cut on true
        where line.suits and (cut.id is null or (line.run_at, line.id) <= (cut.run_at, cut.id))
        order by line.run_at, line.id
      ) as queue_ids
    into piece;
    has_read := has_read + piece.count;
    is_level_done := piece.cut_id is null;
    from_run_at := piece.cut_run_at;
    from_id := piece.cut_id;

    -- The walk visits every queue, which takes as long as reading ten jobs of each. As long as few queues are in the way, their jobs are
    -- read until as much time has gone by.
    has_walked := has_read >= max_read and (
      cardinality(known) >= 1000
      or has_read >= (
        select 10 * queue.reltuples from pg_class as queue where queue.oid = 'graphile_worker._private_job_queues'::regclass
      )
    );
    if not has_walked then
      select coalesce(array_agg(met.queue_id order by met.nth), '{}'), array_agg(met.jobs order by met.nth) into candidates, shares
      from (
        select line.queue_id, count(*)::integer as jobs, min(line.nth) as nth
        from unnest(piece.queue_ids) with ordinality as line (queue_id, nth)
        group by line.queue_id
        having line.queue_id <> all (known)
      ) as met;
    else
      candidates := graphile_worker._hathi_walk_queues(tasks, forbidden, accepted, instant, known);
      shares := array_fill(1, array[cardinality(candidates)]);
    end if;
    continue when candidates = '{}';

    known := known || candidates;
    select * into step
    from graphile_worker._hathi_lock_queues(
      candidates, shares, wanted - cardinality(rows), per_queue, task_ids, forbidden, accepted, instant
    );
    rows := rows || step.rows;
    queue_ids := queue_ids || step.queue_ids;
    priorities := priorities || step.priorities;
    run_ats := run_ats || step.run_ats;
    ids := ids || step.ids;
    contended := contended or step.contended;
  end loop;
end;
$hathi$;

create function graphile_worker._hathi_scan_tasks(task_ids integer[], wanted integer, forbidden text[], accepted text[], instant timestamp with time zone, mark_priorities smallint[], mark_run_ats timestamp with time zone[], mark_ids bigint[], OUT rows tid[], OUT run_ats timestamp with time zone[], OUT ids bigint[], OUT levels smallint[], OUT level_ends integer[], OUT head_run_ats timestamp with time zone[], OUT head_ids bigint[], OUT next_due timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
declare
  tasks constant integer := cardinality(task_ids);
  is_marked constant boolean := cardinality(mark_priorities) > 0;
  level integer := -32769;
  head record;
  piece record;
  room integer := wanted;
  share integer;
begin
  rows := '{}';
  run_ats := '{}';
  ids := '{}';
  levels := '{}';
  level_ends := '{}';
  head_run_ats := '{}';
  head_ids := '{}';

  while room > 0 loop
    if is_marked then
      select mark.priority, mark.run_at, mark.id into head
      from unnest(mark_priorities, mark_run_ats, mark_ids) as mark (priority, run_at, id)
      where mark.priority > level
      order by mark.priority
      limit 1;
      exit when not found;
    else
      select first.priority, first.run_at, first.id - 1 as id into head
      from unnest(task_ids) as task (id)
      cross join lateral (
        select job.priority, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where job.locked_at is null
          and job.attempts < job.max_attempts
          and job.job_queue_id is null
          and job.task_id = task.id
          and job.priority > level
          and (forbidden is null or (job.flags ?| forbidden) is not true)
          and (accepted is null or (job.flags ?| accepted) is true)
        order by job.priority, job.run_at, job.id
        limit 1
      ) as first
      order by first.priority, first.run_at, first.id
      limit 1;
      exit when not found;
    end if;
    level := head.priority;
    if head.run_at > instant then
      next_due := least(next_due, head.run_at);
      continue;
    end if;
    levels := levels || head.priority;
    head_run_ats := head_run_ats || head.run_at;
    head_ids := head_ids || head.id;

    share := least(room, greatest(3 * room / (2 * tasks), 2));
    loop
      with line as materialized (
        select task.id as task_id, job.tid, job.run_at, job.id
        from unnest(task_ids) as task (id)
        cross join lateral (
          select candidate.ctid as tid, candidate.run_at, candidate.id
          from graphile_worker._private_jobs as candidate
          where candidate.locked_at is null
            and candidate.attempts < candidate.max_attempts
            and candidate.job_queue_id is null
            and candidate.task_id = task.id
            and candidate.priority = level
            and candidate.run_at <= instant
            and (candidate.run_at, candidate.id) > (head.run_at, head.id)
            and (forbidden is null or (candidate.flags ?| forbidden) is not true)
            and (accepted is null or (candidate.flags ?| accepted) is true)
          order by candidate.run_at, candidate.id
          limit share
          for update skip locked
        ) as job
      ), cut as (
        -- The nearest end of a share that was used up. The share of a single task is all there is room for.
        select ended.run_at, ended.id
        from (
          select
            (array_agg(line.run_at order by line.run_at, line.id))[share] as run_at,
            (array_agg(line.id order by line.run_at, line.id))[share] as id
          from line
          where tasks > 1
          group by line.task_id
          having count(*) = share
        ) as ended
        order by ended.run_at, ended.id
        limit 1
      )
      select array_agg(next.tid) as rows, array_agg(next.run_at) as run_ats, array_agg(next.id) as ids,
        (select cut.run_at from cut) as cut_run_at, (select cut.id from cut) as cut_id
      into piece
      from (
        select line.tid, line.run_at, line.id
        from line
        where not exists (select from cut where (line.run_at, line.id) > (cut.run_at, cut.id))
        order by line.run_at, line.id
        limit room
      ) as next;

      rows := rows || piece.rows;
      run_ats := run_ats || piece.run_ats;
      ids := ids || piece.ids;
      room := wanted - cardinality(rows);
      exit when room <= 0 or piece.cut_id is null;
      head.run_at := piece.cut_run_at;
      head.id := piece.cut_id;
      share := least(room, share * 4);
    end loop;
    level_ends := level_ends || cardinality(rows);
  end loop;
end;
$hathi$;

create function graphile_worker._hathi_singleton_queue(identifier text, guard_key text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select case
    when length(name.whole) <= 128 then name.whole
    else left(name.whole, 111) || '#' || to_hex(hashtextextended(name.whole, 0))
  end
  from (select 'singleton:' || identifier || ':' || guard_key as whole) as name;
$hathi$;

create function graphile_worker._hathi_sort_queues(task_ids integer[], queue_ids integer[], forbidden text[], accepted text[], instant timestamp with time zone)
 RETURNS integer[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return array(
    select head.queue_id
    from (
      select distinct on (queue.id) queue.id as queue_id, first.priority, first.run_at, first.id
      from unnest(task_ids, queue_ids) as pair (task_id, queue_id)
      join graphile_worker._private_job_queues as queue on queue.id = pair.queue_id
      cross join lateral (
        select job.priority, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where job.is_available
          and job.task_id = pair.task_id
          and job.job_queue_id = queue.id
          and job.run_at <= instant
          and (forbidden is null or (job.flags ?| forbidden) is not true)
          and (accepted is null or (job.flags ?| accepted) is true)
        order by job.priority, job.run_at, job.id
        limit 1
      ) as first
      where queue.is_available
      order by queue.id, first.priority, first.run_at, first.id
    ) as head
    order by head.priority, head.run_at, head.id
  );
end;
$hathi$;

create function graphile_worker._hathi_spare_tokens(bound_id integer, wanted integer, ahead integer, moment timestamp with time zone, late_ms double precision)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return (
    select greatest(0, floor(least(ahead * within.ms / 25, tokens.jobs / 2 - wanted)))::integer
    from graphile_worker._hathi_limits as l
    left join graphile_worker._hathi_limit_overrides as o on o.limit_id = l.id and o.key = '*'
    left join graphile_worker._hathi_limit_rates as r on r.limit_id = l.id and r.key = '*'
    cross join lateral (select coalesce(o.places, l.places) as places, coalesce(o.period_ms, l.period_ms) as period_ms) as rate
    cross join lateral (
      select slack.ms as slack, (rate.period_ms + slack.ms) / nullif(rate.places, 0) as step, coalesce(o.burst, l.burst) as burst,
        greatest(0, least(1e12, coalesce(date_part('epoch', r.tat - moment) * 1000, 0))) as used_ms
      from graphile_worker._hathi_rate_slack(rate.period_ms) as slack (ms)
    ) as given
    cross join lateral (
      select coalesce(graphile_worker._hathi_rate_grace(given.burst, given.step, l.cost, given.used_ms), 0) as ms
    ) as grace
    cross join lateral (select least(25, (given.slack + grace.ms) * 0.4) as ms) as within
    cross join lateral (
      select least(1e6, floor(((within.ms - given.used_ms) / given.step + given.burst + 1) / l.cost)) as jobs
    ) as tokens
    where l.id = bound_id and rate.places > 0 and grace.ms >= late_ms
  );
end;
$hathi$;

create function graphile_worker._hathi_start_texts(taken integer, counts integer[], start_ats timestamp with time zone[], steps double precision[], slacks double precision[], late_ms double precision, began_at timestamp with time zone)
 RETURNS text[]
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  texts text[] := '{}';
  before integer := taken;
begin
  for nth in 1 .. cardinality(counts) loop
    if start_ats[nth] is not null then
      texts := texts || concat(
        '[', before, ',', counts[nth], ',', date_part('epoch', start_ats[nth] - began_at) * 1000, ',', steps[nth], ',', slacks[nth], ',', late_ms, ']'
      );
    end if;
    before := before + counts[nth];
  end loop;
  return texts;
end;
$hathi$;

create function graphile_worker._hathi_take_in_order(pool_id text, instant timestamp with time zone, rows tid[], OUT jobs text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  with claimed as (
    update graphile_worker._private_jobs as job
    set attempts = job.attempts + 1, locked_by = pool_id, locked_at = instant
    where job.ctid = any (rows)
    returning job.id, job.job_queue_id, job.task_id, job.payload, job.priority, job.run_at, job.attempts, job.max_attempts,
      job.last_error, job.created_at, job.updated_at, job.key, job.revision, job.flags,
      -- A large payload is read by a statement of its own: in one text with others it would be copied several times.
      pg_column_size(job.payload) > 8000
        or (pg_column_size(job.payload) > 1000 and pg_column_compression(job.payload) is not null) as is_large
  )
  select
    string_agg(
      -- Written out by hand: json_build_array looks up the type of every value of every row, which costs several times more.
      -- JSON has no infinite numbers, so an infinite time becomes one that is far out of range.
      concat(
        '["', claimed.id, '",', coalesce(claimed.job_queue_id::text, 'null'), ',', claimed.task_id, ',',
        case when claimed.is_large then 'null' else claimed.payload::text end, ',',
        claimed.priority, ',', least(greatest(date_part('epoch', claimed.run_at), -1e15), 1e15), ',',
        claimed.attempts, ',', claimed.max_attempts, ',',
        case
          when claimed.last_error is null then 'null'
          -- Its beginning is enough to go on with, whoever wrote it and however long it is.
          when pg_column_size(claimed.last_error) > 8000 or pg_column_compression(claimed.last_error) is not null
            then to_json(substr(claimed.last_error, 1, 8000))::text
          else to_json(claimed.last_error)::text
        end, ',',
        least(greatest(date_part('epoch', claimed.created_at), -1e15), 1e15), ',',
        least(greatest(date_part('epoch', claimed.updated_at), -1e15), 1e15), ',',
        case when claimed.key is null then 'null' else to_json(claimed.key)::text end, ',', claimed.revision, ',',
        coalesce(claimed.flags::text, 'null'), case when claimed.is_large then ',1]' else ']' end
      ),
      ',' order by claimed.priority, claimed.run_at, claimed.id
    )
  into jobs
  from claimed;
end;
$hathi$;

create function graphile_worker._hathi_take_jobs(pool_id text, instant timestamp with time zone, rows tid[], OUT jobs text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  with claimed as (
    update graphile_worker._private_jobs as job
    set attempts = job.attempts + 1, locked_by = pool_id, locked_at = instant
    from unnest(rows) with ordinality as line (tid, place)
    where job.ctid = line.tid
    returning job.*, line.place,
      pg_column_size(job.payload) > 8000
        or (pg_column_size(job.payload) > 1000 and pg_column_compression(job.payload) is not null) as is_large
  )
  select string_agg(
    concat(
      '["', claimed.id, '",', coalesce(claimed.job_queue_id::text, 'null'), ',', claimed.task_id, ',',
      case when claimed.is_large then 'null' else claimed.payload::text end, ',',
      claimed.priority, ',', least(greatest(date_part('epoch', claimed.run_at), -1e15), 1e15), ',',
      claimed.attempts, ',', claimed.max_attempts, ',',
      case
        when claimed.last_error is null then 'null'
        when pg_column_size(claimed.last_error) > 8000 or pg_column_compression(claimed.last_error) is not null
          then to_json(substr(claimed.last_error, 1, 8000))::text
        else to_json(claimed.last_error)::text
      end, ',',
      least(greatest(date_part('epoch', claimed.created_at), -1e15), 1e15), ',',
      least(greatest(date_part('epoch', claimed.updated_at), -1e15), 1e15), ',',
      case when claimed.key is null then 'null' else to_json(claimed.key)::text end, ',', claimed.revision, ',',
      coalesce(claimed.flags::text, 'null'), case when claimed.is_large then ',1]' else ']' end
    ),
    ',' order by claimed.place
  ) into jobs
  from claimed;
end;
$hathi$;

create function graphile_worker._hathi_take_queue_row(wanted text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '200ms'
AS $hathi$
begin
  insert into graphile_worker._private_job_queues (queue_name)
  select wanted
  where not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = wanted)
  on conflict do nothing;
  perform 1 from graphile_worker._private_job_queues as queue where queue.queue_name = wanted for no key update;
  return true;
exception when lock_not_available then
  return false;
end;
$hathi$;

create function graphile_worker._hathi_task_id(wanted text)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_tasks_in_queues(task_ids integer[])
 RETURNS integer[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return array(
    select task.id
    from unnest(task_ids) as task (id)
    cross join lateral (
      select from graphile_worker._private_jobs as job
      where job.locked_at is null
        and job.attempts < job.max_attempts
        and job.job_queue_id is not null
        and job.task_id = task.id
      limit 1
    ) as job
  );
end;
$hathi$;

create function graphile_worker._hathi_tell_ended(ids bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  perform pg_notify('hathi:ended', case when cardinality(ids) <= 300 then array_to_json(ids)::text else '[]' end);
end;
$hathi$;

create function graphile_worker._hathi_tend_history(days integer[])
 RETURNS boolean
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select graphile_worker._hathi_tend_history_on(days, (now() at time zone 'utc')::date)
$hathi$;

create function graphile_worker._hathi_tend_history_on(days integer[], today date)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
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

create function graphile_worker._hathi_tend_parked()
 RETURNS double precision
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  late record;
begin
  if not exists (select from graphile_worker._hathi_job_crashes) then
    return null;
  end if;
  for late in
    select job.id, job.job_queue_id
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.locked_by = 'hathi-recovery'
      and (
        crash.release_at < now() - interval '10 minutes'
        or job.attempts >= job.max_attempts
        or crash.release_at <= now() and not exists (
          select from graphile_worker._private_workers as worker
          where worker.metadata -> 'tasks' ? task.identifier and graphile_worker._hathi_is_beating(worker.last_heartbeat_at)
        )
      )
    order by job.id
    for update of job skip locked
  loop
    if late.job_queue_id is not null then
      perform 1 from graphile_worker._private_job_queues as queue where queue.id = late.job_queue_id for no key update skip locked;
      continue when not found;
      update graphile_worker._private_job_queues as queue
      set locked_by = null, locked_at = null
      where queue.id = late.job_queue_id and queue.locked_by = 'hathi-recovery';
    end if;
    update graphile_worker._private_jobs as job set locked_by = null, locked_at = null where job.id = late.id;
    perform graphile_worker._hathi_bury_cancelled(array[late.id]);
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}');
  end loop;
  return (
    select date_part('epoch', min(crash.release_at) - now()) * 1000
    from graphile_worker._hathi_job_crashes as crash
    join graphile_worker._private_jobs as job on job.id = crash.job_id
    where job.locked_by = 'hathi-recovery'
  );
end;
$hathi$;

create function graphile_worker._hathi_tidy_control()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_tidy_guards(most integer)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET lock_timeout TO '100ms'
AS $hathi$
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

create function graphile_worker._hathi_tidy_limits()
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  delete from graphile_worker._hathi_limit_holds as held where held.until < now();
  delete from graphile_worker._hathi_limit_rates as rate
  using graphile_worker._hathi_limits as bound
  where bound.id = rate.limit_id
    and rate.tat < clock_timestamp() - 2 * coalesce(bound.period_ms, 0) * interval '1 millisecond' - interval '1 minute';
  -- Tasks that were only held.
  with over as (
    delete from graphile_worker._hathi_limits as bound
    where bound.kind = 'fair' and bound.path = '{}' and bound.origin = 'set'
      and not exists (select from graphile_worker._hathi_limit_holds as held where held.limit_id = bound.id)
    returning bound.id
  )
  update graphile_worker._hathi_limited_tasks as member
  set limit_ids = array(select id from unnest(member.limit_ids) as id where id not in (select over.id from over))
  where member.limit_ids && array(select over.id from over);
  delete from graphile_worker._hathi_limited_tasks as member where member.limit_ids = '{}';
end;
$hathi$;

create function graphile_worker._hathi_tidy_progress()
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  delete from graphile_worker._hathi_job_progress as progress
  where not exists (select from graphile_worker._private_jobs as job where job.id = progress.job_id);
$hathi$;

create function graphile_worker._hathi_unlimited_tasks(task_ids integer[])
 RETURNS integer[]
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
begin
  return array(
    select known.id
    from unnest(task_ids) with ordinality as known (id, nth)
    where not exists (
      select from graphile_worker._private_tasks as task
      join graphile_worker._hathi_limited_tasks as member on member.task = task.identifier
      where task.id = known.id
    )
    order by known.nth
  );
end;
$hathi$;

create function graphile_worker._hathi_unpaused_tasks(worker_names text[], task_ids integer[], clock timestamp with time zone)
 RETURNS integer[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  instant constant timestamptz := coalesce(clock, now());
begin
  perform 1
  from graphile_worker._hathi_pauses as pause
  left join graphile_worker._private_job_queues as queue on pause.kind = 'queue' and queue.queue_name = pause.name
  where pause.until <= instant or (queue.id is not null and queue.locked_at is distinct from 'infinity');
  if found then
    perform graphile_worker._hathi_align_pauses(instant);
  end if;

  perform 1
  from graphile_worker._hathi_pauses as pause
  where pause.until > instant and (pause.kind = 'all' or (pause.kind = 'worker' and pause.name = any (worker_names)));
  if found then
    return '{}';
  end if;
  return array(
    select id
    from unnest(task_ids) with ordinality as known (id, nth)
    where id not in (
      select task.id
      from graphile_worker._hathi_pauses as pause
      join graphile_worker._private_tasks as task on task.identifier = pause.name
      where pause.kind = 'task' and pause.until > instant
    )
    order by nth
  );
end;
$hathi$;

create function graphile_worker._hathi_unplaced_days(stem text)
 RETURNS SETOF date
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select expires_on from graphile_worker._hathi_history_batches_rest where stem = '_hathi_history_batches'
  union
  select expires_on from graphile_worker._hathi_history_attempts_rest where stem = '_hathi_history_attempts'
  union
  select expires_on from graphile_worker._hathi_job_links_rest where stem = '_hathi_job_links'
$hathi$;

create function graphile_worker._hathi_vacuum_holders()
 RETURNS TABLE(kind text, name text, seconds double precision, transactions integer, what text, remedy text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker._hathi_walk_queues(task_ids integer[], forbidden text[], accepted text[], instant timestamp with time zone, known integer[])
 RETURNS integer[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  met record;
begin
  with recursive walk (task_id, queue_id) as (
    select task.id, -1
    from unnest(task_ids) as task (id)
    union all
    select walk.task_id, (
      select job.job_queue_id
      from graphile_worker._private_jobs as job
      where job.is_available
        and job.task_id = walk.task_id
        and job.job_queue_id > walk.queue_id
      order by job.job_queue_id
      limit 1
    )
    from walk
    where walk.queue_id is not null
  )
  select array_agg(walk.task_id) as task_ids, array_agg(walk.queue_id) as queue_ids into met
  from walk
  where walk.queue_id <> all (known);
  return graphile_worker._hathi_sort_queues(met.task_ids, met.queue_ids, forbidden, accepted, instant);
end;
$hathi$;

create function graphile_worker._hathi_watch_jobs(ids bigint[])
 RETURNS TABLE(job_id bigint, state text, task_identifier text, attempts integer, error text, error_class text, result json, is_later boolean, done double precision, total double precision, note text, reported_at timestamp with time zone)
 LANGUAGE plpgsql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker._hathi_watch_lines(grace interval)
 RETURNS double precision
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  line record;
  first_lost timestamptz;
begin
  for line in select id, key, lost_at from graphile_worker._hathi_worker_lines order by id loop
    if pg_try_advisory_xact_lock_shared(line.key) then
      if line.lost_at is null or line.lost_at > now() then
        line.lost_at := now();
        update graphile_worker._hathi_worker_lines set lost_at = now() where id = line.id and key = line.key;
      end if;
      first_lost := least(first_lost, line.lost_at);
    elsif line.lost_at is not null then
      update graphile_worker._hathi_worker_lines set lost_at = null where id = line.id and key = line.key;
    end if;
  end loop;
  return date_part('epoch', first_lost + grace - now()) * 1000;
end;
$hathi$;

create function graphile_worker._hathi_write_progress(pool_id text, job_ids bigint[], dones double precision[], totals double precision[], notes text[], ended_ids bigint[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_indexscan TO 'on'
 SET enable_indexonlyscan TO 'on'
 SET enable_tidscan TO 'on'
 SET enable_nestloop TO 'on'
 SET enable_seqscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
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

create function graphile_worker.add_debounced_job(identifier text, payload json, key text, delay interval, max_wait interval DEFAULT NULL::interval, queue_name text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[])
 RETURNS graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, null, max_attempts, null, priority, flags, null, 'debounce', key, delay, max_wait, null
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

create function graphile_worker.add_job(identifier text, payload json DEFAULT NULL::json, queue_name text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, job_key text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[], job_key_mode text DEFAULT 'replace'::text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.add_jobs(specs graphile_worker.job_spec[], job_key_preserve_run_at boolean DEFAULT false)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
begin
  return query
    select *
    from graphile_worker._hathi_add_specs(
      specs, case when job_key_preserve_run_at then array(select spec.job_key from unnest(specs) as spec) end
    );
end;
$hathi$;

create function graphile_worker.add_singleton_job(identifier text, payload json, key text, on_conflict text DEFAULT 'skip'::text, queue_name text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[])
 RETURNS graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, run_at, max_attempts, null, priority, flags, null, 'singleton', key, null, null, on_conflict
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

create function graphile_worker.add_throttled_job(identifier text, payload json, key text, period interval, queue_name text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[])
 RETURNS graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select graphile_worker._hathi_add_checked(row(
    identifier, payload, queue_name, run_at, max_attempts, null, priority, flags, null, 'throttle', key, period, null, null
  )::graphile_worker._hathi_guarded_spec);
$hathi$;

create function graphile_worker.cancel_jobs(job_ids bigint[], reason text DEFAULT NULL::text, cancelled_by text DEFAULT NULL::text)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.clear_limit(name text, key text DEFAULT NULL::text, kind text DEFAULT NULL::text, path text[] DEFAULT NULL::text[])
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
#variable_conflict use_column
declare
  bound_id constant integer :=
    graphile_worker._hathi_find_limit(clear_limit.name, clear_limit.key is not null, clear_limit.kind, clear_limit.path);
  whose constant text := case
    when clear_limit.key is null then '*'
    else graphile_worker._hathi_limit_key(to_json(clear_limit.key), '{}')
  end;
  changes integer;
  total integer;
begin
  delete from graphile_worker._hathi_limit_overrides as old where old.limit_id = bound_id and old.key = whose;
  get diagnostics total = row_count;
  if whose = '*' then
    perform 1 from graphile_worker._hathi_limits as bound where bound.id = bound_id and bound.origin = 'set';
    if found then
      update graphile_worker._hathi_limited_tasks as member
      set limit_ids = array_remove(member.limit_ids, bound_id)
      where bound_id = any (member.limit_ids);
      get diagnostics changes = row_count;
      total := total + changes;
      delete from graphile_worker._hathi_limited_tasks as member where member.limit_ids = '{}';
      delete from graphile_worker._hathi_limits as bound where bound.id = bound_id;
    end if;
  end if;
  if total > 0 then
    update graphile_worker._hathi_limit_rates as rate
    set free_at = now()
    where rate.limit_id = bound_id and (whose = '*' or rate.key = whose) and rate.free_at > now();
    perform pg_notify('hathi:limits', 'changed');
  end if;
  return total > 0;
end;
$hathi$;

create function graphile_worker.complete_jobs(job_ids bigint[])
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  with locked as materialized (
    select id from graphile_worker._private_jobs where id = any (job_ids) order by id for update
  )
  delete from graphile_worker._private_jobs as job
  using locked
  where job.id = locked.id
    and (job.locked_at is null or job.locked_at < now() - interval '4 hours')
  returning job.*;
$hathi$;

create function graphile_worker.delete_stale_workers(worker_ids text[])
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  delete from graphile_worker._private_workers where id = any (worker_ids);
  update graphile_worker._hathi_former_workers set is_dead = true where id = any (worker_ids);
$hathi$;

create function graphile_worker.force_unlock_workers(worker_ids text[])
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.list_orphan_locked_workers(sweep_threshold interval)
 RETURNS TABLE(worker_id text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select distinct lock.locked_by
  from (
    select job.locked_by, job.locked_at from graphile_worker._private_jobs as job where job.locked_at is not null
    union all
    select queue.locked_by, queue.locked_at from graphile_worker._private_job_queues as queue where queue.locked_at is not null
  ) as lock
  left join graphile_worker._hathi_former_workers as former on former.id = lock.locked_by
  where not exists (select from graphile_worker._private_workers as worker where worker.id = lock.locked_by)
    and (
      former.is_dead
      or lock.locked_at < now() - sweep_threshold and former.id is not null
      or lock.locked_at < now() - interval '4 hours' and lock.locked_at < now() - sweep_threshold
    );
$hathi$;

create function graphile_worker.list_pauses()
 RETURNS SETOF graphile_worker._hathi_pauses
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select pause.* from graphile_worker._hathi_pauses as pause where pause.until > now() order by pause.paused_at, pause.kind, pause.name;
$hathi$;

create function graphile_worker.list_stale_workers(sweep_threshold interval)
 RETURNS TABLE(worker_id text)
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  select worker.id from graphile_worker._private_workers as worker where worker.last_heartbeat_at < now() - sweep_threshold;
$hathi$;

create function graphile_worker.pause_work(kind text, name text DEFAULT NULL::text, until timestamp with time zone DEFAULT NULL::timestamp with time zone, reason text DEFAULT NULL::text, paused_by text DEFAULT NULL::text)
 RETURNS graphile_worker._hathi_pauses
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
#variable_conflict use_column
declare
  added graphile_worker._hathi_pauses;
begin
  insert into graphile_worker._hathi_pauses as pause (kind, name, until, reason, paused_by)
  values (
    pause_work.kind, graphile_worker._hathi_check_pause(pause_work.kind, pause_work.name),
    coalesce(pause_work.until, 'infinity'), pause_work.reason, coalesce(pause_work.paused_by, session_user)
  )
  on conflict (kind, name) do update set
    paused_at = case when pause.until > now() then pause.paused_at else excluded.paused_at end,
    until = excluded.until,
    reason = excluded.reason,
    paused_by = excluded.paused_by
  returning * into added;
  if added.kind = 'queue' and added.until > now() and graphile_worker._hathi_take_queue_row(added.name) then
    update graphile_worker._private_job_queues as queue
    set locked_at = 'infinity', locked_by = coalesce(queue.locked_by, 'hathi:paused')
    where queue.queue_name = added.name and queue.locked_at is distinct from 'infinity';
  end if;
  perform pg_notify('hathi:pauses', '');
  return added;
end;
$hathi$;

create function graphile_worker.permanently_fail_jobs(job_ids bigint[], error_message text DEFAULT NULL::text)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval DEFAULT '00:00:00'::interval)
 RETURNS integer
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  recovered constant bigint[] := array(
    select recovered.job_id from graphile_worker._hathi_recover_jobs(worker_ids, '{}', recovery_delay, null, false, '{}', '{}') as recovered
  );
begin
  perform graphile_worker._hathi_bury_cancelled(recovered);
  return cardinality(recovered);
end;
$hathi$;

create function graphile_worker.remove_job(job_key text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 STRICT
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.reschedule_jobs(job_ids bigint[], run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, priority integer DEFAULT NULL::integer, attempts integer DEFAULT NULL::integer, max_attempts integer DEFAULT NULL::integer)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
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

create function graphile_worker.resume_work(kind text, name text DEFAULT NULL::text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
declare
  wanted constant text := graphile_worker._hathi_check_pause(resume_work.kind, resume_work.name);
  was_active boolean;
begin
  with paused as materialized (
    select pause.until
    from graphile_worker._hathi_pauses as pause
    where pause.kind = resume_work.kind and pause.name = wanted
    for update
  )
  update graphile_worker._hathi_pauses as pause
  set until = '-infinity'
  from paused
  where pause.kind = resume_work.kind and pause.name = wanted
  returning paused.until > now() into was_active;
  if found then
    if resume_work.kind = 'queue' then
      perform graphile_worker._hathi_take_queue_row(wanted);
    end if;
    perform graphile_worker._hathi_align_pauses('-infinity');
    perform pg_notify('hathi:pauses', '');
  end if;
  return coalesce(was_active, false);
end;
$hathi$;

create function graphile_worker.set_limit(name text, key text DEFAULT NULL::text, places integer DEFAULT NULL::integer, weight integer DEFAULT NULL::integer, burst integer DEFAULT NULL::integer, period interval DEFAULT NULL::interval, kind text DEFAULT NULL::text, path text[] DEFAULT NULL::text[])
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
#variable_conflict use_column
declare
  bound_id integer := graphile_worker._hathi_find_limit(set_limit.name, set_limit.key is not null, set_limit.kind, set_limit.path);
  period_ms constant double precision := date_part('epoch', set_limit.period) * 1000;
  whose constant text := case
    when set_limit.key is null then '*'
    else graphile_worker._hathi_limit_key(to_json(set_limit.key), '{}')
  end;
begin
  if set_limit.places < 0 or set_limit.weight not between 1 and 1000 or set_limit.burst < 0 or period_ms < 100 then
    raise exception 'A limit must be at least 0, a weight 1 to 1000, a burst at least 0 and a period at least 100 ms.' using errcode = '22023';
  end if;
  if bound_id is null then
    if set_limit.key is not null or set_limit.places is null then
      raise exception 'There is no limit ''%''%.', set_limit.name, case when set_limit.key is null then '' else ' with a key' end
        using errcode = '22023', hint = 'Declare it in a task''s options, or give a limit for the whole task first.';
    end if;
    if coalesce(set_limit.kind, 'concurrency') = 'rate' and period_ms is null then
      raise exception 'A rate needs a period.' using errcode = '22023';
    end if;
    insert into graphile_worker._hathi_limits (scope, name, kind, path, places, period_ms, burst, weight, origin)
    values (
      'task', set_limit.name, coalesce(set_limit.kind, 'concurrency'), coalesce(set_limit.path, '{}'), set_limit.places, period_ms,
      coalesce(set_limit.burst, 0), coalesce(set_limit.weight, 1), 'set'
    )
    on conflict (scope, name, kind, path) do update set
      places = excluded.places, period_ms = excluded.period_ms, burst = excluded.burst, weight = excluded.weight, origin = 'set'
    returning id into bound_id;
    insert into graphile_worker._hathi_limited_tasks as member (task, limit_ids)
    values (set_limit.name, array[bound_id])
    on conflict (task) do update set limit_ids = member.limit_ids || excluded.limit_ids;
  else
    insert into graphile_worker._hathi_limit_overrides as old (limit_id, key, places, period_ms, burst, weight, set_by)
    values (bound_id, whose, set_limit.places, period_ms, set_limit.burst, set_limit.weight, session_user)
    on conflict (limit_id, key) do update set
      places = coalesce(excluded.places, old.places), period_ms = coalesce(excluded.period_ms, old.period_ms),
      burst = coalesce(excluded.burst, old.burst), weight = coalesce(excluded.weight, old.weight), set_at = now(), set_by = excluded.set_by;
  end if;
  -- What was blocked by the old rate is looked at again.
  update graphile_worker._hathi_limit_rates as rate
  set free_at = now()
  where rate.limit_id = bound_id and (whose = '*' or rate.key = whose) and rate.free_at > now();
  perform pg_notify('hathi:limits', 'changed');
end;
$hathi$;

create function graphile_worker.worker_deregister(worker_id text)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  delete from graphile_worker._private_workers where id = worker_deregister.worker_id;
$hathi$;

create function graphile_worker.worker_heartbeat(worker_id text, metadata json DEFAULT NULL::json)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $hathi$
  insert into graphile_worker._private_workers as worker (id, last_heartbeat_at, metadata)
  values (worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb)
  on conflict (id) do update set
    last_heartbeat_at = excluded.last_heartbeat_at,
    metadata = coalesce(excluded.metadata, worker.metadata);
$hathi$;
