-- The tables, type and view that Graphile Worker 0.18 leaves behind after its migrations 1 to 20, in one piece.
-- Skipped when such a schema is found and adopted. Names, column order and types are the interface: original
-- workers run on these tables beside ours.

-- First, so that an original that starts at this moment waits here and then finds everything done.
insert into graphile_worker.migrations (id, breaking)
  select id, id in (1, 3, 11, 13, 14, 16, 19)
  from generate_series(1, 20) as id;

create table graphile_worker._private_tasks (
  id integer generated always as identity (sequence name graphile_worker.tasks_id_seq) constraint tasks_pkey primary key,
  identifier text not null constraint tasks_identifier_key unique,
  constraint tasks_identifier_check check (length(identifier) <= 128)
);

create table graphile_worker._private_job_queues (
  id integer generated always as identity (sequence name graphile_worker.job_queues_id_seq) constraint job_queues_pkey1 primary key,
  queue_name text not null constraint job_queues_queue_name_key unique,
  locked_at timestamptz,
  locked_by text,
  is_available boolean not null generated always as (locked_at is null) stored,
  constraint job_queues_queue_name_check check (length(queue_name) <= 128)
);

-- No foreign keys: a job is written and deleted far too often to pay for them, and nothing but GC deletes what it points to.
create table graphile_worker._private_jobs (
  id bigint generated always as identity (sequence name graphile_worker.jobs_id_seq1) constraint jobs_pkey1 primary key,
  job_queue_id integer,
  task_id integer not null,
  payload json not null default '{}'::json,
  priority smallint not null default 0,
  run_at timestamptz not null default now(),
  attempts smallint not null default 0,
  max_attempts smallint not null default 25,
  last_error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  key text constraint jobs_key_key1 unique,
  locked_at timestamptz,
  locked_by text,
  revision integer not null default 0,
  flags jsonb,
  is_available boolean not null generated always as (locked_at is null and attempts < max_attempts) stored,
  constraint jobs_key_check check (length(key) > 0 and length(key) <= 512),
  constraint jobs_max_attempts_check check (max_attempts >= 1)
);

create index jobs_main_index on graphile_worker._private_jobs
  using btree (priority, run_at) include (id, task_id, job_queue_id)
  where is_available = true;
create index jobs_no_queue_index on graphile_worker._private_jobs
  using btree (priority, run_at) include (id, task_id)
  where is_available = true and job_queue_id is null;

create table graphile_worker._private_known_crontabs (
  identifier text not null constraint known_crontabs_pkey primary key,
  known_since timestamptz not null,
  last_execution timestamptz
);

-- Row-level security without a policy: only the owner, who runs the workers, sees these tables.
alter table graphile_worker._private_tasks enable row level security;
alter table graphile_worker._private_job_queues enable row level security;
alter table graphile_worker._private_jobs enable row level security;
alter table graphile_worker._private_known_crontabs enable row level security;

create type graphile_worker.job_spec as (
  identifier text,
  payload json,
  queue_name text,
  run_at timestamptz,
  max_attempts smallint,
  job_key text,
  priority smallint,
  flags text[]
);

create view graphile_worker.jobs as
  select
    jobs.id,
    job_queues.queue_name,
    tasks.identifier as task_identifier,
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
  from graphile_worker._private_jobs as jobs
  join graphile_worker._private_tasks as tasks on tasks.id = jobs.task_id
  left join graphile_worker._private_job_queues as job_queues on job_queues.id = jobs.job_queue_id;
