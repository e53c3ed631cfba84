-- Where the migrations lead. Made by a test, for people to read; to change the schema, write a migration.
-- Rows in use: migrations has Graphile Worker's ids 1 to 20, _hathi_migrations has ours.

-- Tables

create table graphile_worker._hathi_announced_migrations (
  id integer not null,
  announced_at timestamp with time zone not null default now(),
  constraint _hathi_announced_migrations_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_announced_migrations enable row level security;

create table graphile_worker._hathi_cron_jobs (
  identifier text not null,
  job_id bigint not null,
  constraint _hathi_cron_jobs_pkey PRIMARY KEY (identifier)
);
alter table graphile_worker._hathi_cron_jobs enable row level security;

create table graphile_worker._hathi_former_workers (
  id text not null,
  left_at timestamp with time zone not null default now(),
  constraint _hathi_former_workers_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_former_workers enable row level security;

create table graphile_worker._hathi_job_crashes (
  job_id bigint not null,
  attempt smallint not null,
  crashes integer not null,
  constraint _hathi_job_crashes_pkey PRIMARY KEY (job_id)
);
alter table graphile_worker._hathi_job_crashes enable row level security;

create table graphile_worker._hathi_migrations (
  id integer not null,
  name text not null,
  ts timestamp with time zone not null default now(),
  constraint _hathi_migrations_pkey PRIMARY KEY (id)
);

create table graphile_worker._hathi_sweeps (
  id boolean not null default true,
  swept_at timestamp with time zone not null,
  constraint _hathi_sweeps_id_check CHECK (id),
  constraint _hathi_sweeps_pkey PRIMARY KEY (id)
);
alter table graphile_worker._hathi_sweeps enable row level security;

create table graphile_worker._hathi_worker_lines (
  id text not null,
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

CREATE INDEX _hathi_jobs_by_queue ON graphile_worker._private_jobs USING btree (job_queue_id, priority, run_at, id) INCLUDE (task_id) WHERE (is_available AND (job_queue_id IS NOT NULL));

CREATE INDEX _hathi_jobs_by_task ON graphile_worker._private_jobs USING btree (task_id, priority, run_at, id) WHERE ((locked_at IS NULL) AND (attempts < max_attempts) AND (job_queue_id IS NULL));

CREATE INDEX _hathi_jobs_in_order ON graphile_worker._private_jobs USING btree (priority, run_at, id) INCLUDE (task_id, job_queue_id) WHERE is_available;

CREATE INDEX _private_workers_last_heartbeat_at_idx ON graphile_worker._private_workers USING btree (last_heartbeat_at);

CREATE INDEX jobs_main_index ON graphile_worker._private_jobs USING btree (priority, run_at) INCLUDE (id, task_id, job_queue_id) WHERE (is_available = true);

CREATE INDEX jobs_no_queue_index ON graphile_worker._private_jobs USING btree (priority, run_at) INCLUDE (id, task_id) WHERE ((is_available = true) AND (job_queue_id IS NULL));

-- Types

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

create function graphile_worker._hathi_add_cron_job(entry text, may_overlap boolean, task text, payload json, queue_name text, run_at timestamp with time zone, max_attempts integer, job_key text, priority integer, flags text[], job_key_mode text)
 RETURNS bigint
 LANGUAGE plpgsql
AS $hathi$
declare
  added bigint;
begin
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

create function graphile_worker._hathi_add_jobs(task_names text[], job_tasks integer[], queue_names text[], job_queues integer[], payloads text[], run_ats timestamp with time zone[], max_attempts smallint[], priorities smallint[], flags text[], OUT ids text, OUT task_ids integer[], OUT queue_ids integer[], OUT added_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
AS $hathi$
begin
  added_at := now();
  task_ids := array(
    select graphile_worker._hathi_task_id(name) from unnest(task_names) with ordinality as task (name, nth) order by nth
  );
  if queue_names is not null then
    insert into graphile_worker._private_job_queues (queue_name)
      select name
      from unnest(queue_names) as name
      where not exists (select from graphile_worker._private_job_queues as known where known.queue_name = name)
      order by name
      on conflict do nothing;
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

create function graphile_worker._hathi_check_spec(identifier text, queue_name text, job_key text, max_attempts integer)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
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
end;
$hathi$;

create function graphile_worker._hathi_claim_jobs(pool_id text, task_ids integer[], wanted integer, per_queue integer, forbidden text[], accepted text[], clock timestamp with time zone, floor_priorities smallint[], floor_run_ats timestamp with time zone[], floor_ids bigint[], between_floors boolean, off_order boolean, relaxed boolean, OUT jobs text, OUT due_in_ms double precision, OUT reached text, OUT polluted boolean, OUT contended boolean, OUT searched_ms double precision)
 RETURNS record
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET enable_sort TO 'off'
 SET enable_incremental_sort TO 'off'
 SET enable_material TO 'off'
 SET jit TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  instant timestamptz := coalesce(clock, now());
  -- The first 15 bits tell our signposts from other advisory locks, the last 48 are the id of a job.
  post_tag constant bigint := hashtext($name$graphile_worker.$name$) & 32767;
  posted record;
  level integer;
  next_level integer;
  next_mark integer;
  search_from timestamptz;
  room integer := wanted;
  size integer;
  spare integer := wanted * 3 + 500;
  missed integer := 0;
  has_read boolean := false;
  max_missed integer := wanted * 8 + 2000;
  excluded integer;
  fit integer;
  mine integer[] := '{}';
  refused integer[] := '{}';
  taken tid[] := '{}';
  locked tid[];
  piece record;
  from_run_at timestamptz;
  from_id bigint;
  has_seen_queues boolean := false;
  nth integer;
  share integer;
  heads record;
  marks json[] := '{}';
  due timestamptz;
  next_due timestamptz;
begin
  polluted := false;
  contended := false;
  searched_ms := 0;

  level := -32769;
  while room > 0 and not off_order and not polluted and missed <= max_missed loop
    -- The next priority that has a mark, or one without that comes before it. Looking for rows in a marked one would step over
    -- everything that was finished there and is not vacuumed yet. So may looking for one without, which is why it is timed.
    select min(priority) into next_mark from unnest(floor_priorities) as priority where priority > level;
    next_level := null;
    if next_mark is null or between_floors then
      search_from := clock_timestamp();
      select job.priority into next_level
      from graphile_worker._private_jobs as job
      where job.is_available and job.priority > level and job.priority < coalesce(next_mark, 32768)
      order by job.priority
      limit 1;
      searched_ms := searched_ms + date_part('epoch', clock_timestamp() - search_from) * 1000;
    end if;
    level := coalesce(next_level, next_mark);
    exit when level is null;

    nth := array_position(floor_priorities, level::smallint);
    from_run_at := coalesce(floor_run_ats[nth], '-infinity');
    from_id := coalesce(floor_ids[nth], 0);
    size := room;
    if nth is not null and wanted >= 100 then
      -- Large claims that are still being written say where they end. To start there saves stepping over rows that are being
      -- taken; what they passed over is found by the next look without marks.
      select job.run_at, job.id into posted
      from pg_locks as post
      join graphile_worker._private_jobs as job on job.id = ((post.classid::bigint & 65535) << 32 | post.objid::bigint)
      where post.locktype = 'advisory'
        and post.objsubid = 1
        and post.classid::bigint >> 16 = post_tag
        and post.database = (select oid from pg_database where datname = current_database())
        and job.priority = level
        and (job.run_at, job.id) > (from_run_at, from_id)
      order by job.run_at desc, job.id desc
      limit 1;
      if found then
        from_run_at := posted.run_at;
        from_id := posted.id;
      end if;
    end if;

    loop
      select
        count(*) as seen,
        max(head.run_at) as last_run_at,
        (array_agg(head.id))[count(*)] as last_id,
        -- Rows that fit but find no room are for the next look, so that is where it goes on.
        (array_agg(head.run_at) filter (where head.fits))[room] as cut_run_at,
        (array_agg(head.id) filter (where head.fits))[room] as cut_id,
        array_agg(head.ctid) filter (where head.fits) as rows,
        array_agg(head.job_queue_id) filter (where head.fits) as row_queues,
        coalesce(bool_or(head.job_queue_id is not null) filter (where head.fits), false) as has_queues,
        array_agg(head.job_queue_id) filter (where head.blocked) as blocked
      into piece
      from (
        select line.*, line.suits and not line.blocked as fits
        from (
          select job.ctid, job.id, job.run_at, job.job_queue_id,
            job.task_id = any (task_ids)
              and (forbidden is null or (job.flags ?| forbidden) is not true)
              and (accepted is null or (job.flags ?| accepted) is true) as suits,
            -- Jobs of a queue keep their order. So its state is asked here and not later: if it is let go while we look, it may
            -- have got jobs back that we did not see, and those come first. They may also lie behind the marks.
            case
              when job.job_queue_id is null then false
              when job.job_queue_id = any (refused) or cardinality(floor_priorities) > 0 then true
              when job.job_queue_id = any (mine) then false
              -- Scalars, since the planner may answer an `exists` by reading all queues, or all jobs, into a hash table.
              else (
                select queue.is_available
                from graphile_worker._private_job_queues as queue
                where queue.id = job.job_queue_id
              ) is not true
              -- Earlier jobs may have come back since we read past their places.
              or has_read and (
                select earlier.id
                from graphile_worker._private_jobs as earlier
                where earlier.is_available
                  and earlier.job_queue_id = job.job_queue_id
                  and (earlier.priority, earlier.run_at, earlier.id) <= (level, from_run_at, from_id)
                  and earlier.run_at <= instant
                  and earlier.task_id = any (task_ids)
                  and (forbidden is null or (earlier.flags ?| forbidden) is not true)
                  and (accepted is null or (earlier.flags ?| accepted) is true)
                order by earlier.priority, earlier.run_at, earlier.id
                limit 1
              ) is not null
            end as blocked
          from graphile_worker._private_jobs as job
          where job.is_available
            and job.priority = level
            and job.run_at <= instant
            and (job.run_at, job.id) > (from_run_at, from_id)
          order by job.run_at, job.id
          limit size
        ) as line
      ) as head;
      has_read := true;
      exit when piece.seen = 0;

      if piece.blocked is not null then
        refused := refused || array(select unnest(piece.blocked) except select unnest(refused));
      end if;
      locked := '{}';
      excluded := 0;
      if piece.has_queues then
        select step.mine, step.refused, step.locked, step.excluded
        into mine, refused, locked, excluded
        from graphile_worker._hathi_lock_jobs(
          piece.rows, piece.row_queues, room, per_queue, task_ids, instant, mine, refused
        ) as step;
      elsif piece.rows is not null then
        -- As in the function, without the call: a claim of one job is made of few things.
        select coalesce(array_agg(job.ctid), '{}') into locked
        from (
          select candidate.ctid
          from graphile_worker._private_jobs as candidate
          where candidate.ctid = any (piece.rows[1:room])
            and candidate.locked_at is null
            and candidate.attempts + 0 < candidate.max_attempts
            and candidate.job_queue_id is null
            and candidate.run_at <= instant
            and candidate.task_id = any (task_ids)
          for update skip locked
        ) as job;
      end if;
      taken := taken || locked;
      has_seen_queues := has_seen_queues or piece.has_queues or piece.blocked is not null;
      -- Rows that others are just taking are gone in a moment; only those that are not for us make going on pointless.
      fit := coalesce(cardinality(piece.rows), 0);
      spare := spare - (piece.seen - fit) - excluded;
      missed := missed + least(room, fit - excluded) - cardinality(locked);
      room := room - cardinality(locked);
      from_run_at := coalesce(piece.cut_run_at, piece.last_run_at);
      from_id := coalesce(piece.cut_id, piece.last_id);
      polluted := spare < 0;
      exit when room <= 0 or (piece.seen < size and piece.cut_id is null) or polluted or missed > max_missed;
      size := least(greatest(size, (piece.seen - fit) * 2), 2000);
    end loop;
    marks := marks || json_build_array(level, from_run_at::text, from_id::text);
  end loop;

  if room > 0 and (off_order or polluted) then
    -- The heads of queues that are free, from a random place on so that no queue has to wait for all others.
    select array_agg(head.ctid) as rows, array_agg(head.job_queue_id) as row_queues, array_agg(head.priority) as levels,
      array_agg(head.run_at) as run_ats, array_agg(head.id) as ids
    into heads
    from (
      with recursive start (id) as (
        select (random() * coalesce(max(queue.id), 0))::integer from graphile_worker._private_job_queues as queue
      ), walk (id, lap) as (
        select (
            select job.job_queue_id
            from graphile_worker._private_jobs as job
            where job.is_available and job.job_queue_id > (select start.id from start)
            order by job.job_queue_id
            limit 1
          ), 1
        union all
        select case
            when walk.id is null then (
              select job.job_queue_id
              from graphile_worker._private_jobs as job
              where job.is_available and job.job_queue_id > -1
              order by job.job_queue_id
              limit 1
            )
            else (
              select job.job_queue_id
              from graphile_worker._private_jobs as job
              where job.is_available and job.job_queue_id > walk.id
              order by job.job_queue_id
              limit 1
            )
          end,
          case when walk.id is null then walk.lap + 1 else walk.lap end
        from walk
        where (walk.id is not null or walk.lap = 1)
          and (walk.lap = 1 or walk.id <= (select start.id from start))
      )
      select first.*
      from (
        select queue.id
        from walk
        join graphile_worker._private_job_queues as queue on queue.id = walk.id
        where walk.id is not null and queue.is_available and queue.id <> all (mine) and queue.id <> all (refused)
        limit room + 50
      ) as free
      cross join lateral (
        select job.ctid, job.job_queue_id, job.priority, job.run_at, job.id
        from graphile_worker._private_jobs as job
        where job.is_available
          and job.job_queue_id = free.id
          and job.run_at <= instant
          and job.task_id = any (task_ids)
          and (forbidden is null or (job.flags ?| forbidden) is not true)
          and (accepted is null or (job.flags ?| accepted) is true)
        order by job.priority, job.run_at, job.id
        limit per_queue
      ) as first
    ) as head;

    share := least(room, 2 * room / cardinality(task_ids) + 10);
    level := -32769;
    while room > 0 loop
      select job.priority into level
      from graphile_worker._private_jobs as job
      where job.is_available and job.priority > level
      order by job.priority
      limit 1;
      exit when not found;

      -- A share of each task's range. What lies behind the last row of a task that used up its share may not be next in
      -- line, so it is left for the next round of this level.
      loop
        with plain as materialized (
          select job.*, task.id as task_id
          from unnest(task_ids) as task (id)
          cross join lateral (
            select candidate.ctid, candidate.run_at, candidate.id,
              row_number() over (order by candidate.run_at, candidate.id) as nth
            from graphile_worker._private_jobs as candidate
            where candidate.locked_at is null
              and candidate.attempts < candidate.max_attempts
              and candidate.job_queue_id is null
              and candidate.task_id = task.id
              and candidate.priority = level
              and candidate.run_at <= instant
              and candidate.ctid <> all (taken)
              and (forbidden is null or (candidate.flags ?| forbidden) is not true)
              and (accepted is null or (candidate.flags ?| accepted) is true)
            order by candidate.run_at, candidate.id
            limit share
          ) as job
        ), cut as (
          select plain.run_at, plain.id from plain where plain.nth = share order by plain.run_at, plain.id limit 1
        ), line as (
          select plain.ctid, null::integer as queue_id, plain.run_at, plain.id
          from plain
          where not exists (select from cut where (plain.run_at, plain.id) > (cut.run_at, cut.id))
          union all
          select head.tid, head.queue_id, head.run_at, head.id
          from unnest(heads.rows, heads.row_queues, heads.levels, heads.run_ats, heads.ids)
            as head (tid, queue_id, priority, run_at, id)
          where head.priority = level
            and head.tid <> all (taken)
            and head.queue_id <> all (refused)
            and not exists (select from cut where (head.run_at, head.id) > (cut.run_at, cut.id))
          order by 3, 4
          limit room
        )
        select array_agg(line.ctid) as rows, array_agg(line.queue_id) as row_queues, (select count(*) from cut) as more
        into piece
        from line;
        exit when piece.rows is null;

        select step.mine, step.refused, step.locked into mine, refused, locked
        from graphile_worker._hathi_lock_jobs(
          piece.rows, piece.row_queues, room, per_queue, task_ids, instant, mine, refused
        ) as step;
        taken := taken || locked;
        room := room - cardinality(locked);
        exit when room <= 0 or piece.more = 0 or cardinality(locked) = 0;
      end loop;
    end loop;
  end if;

  if cardinality(taken) > 0 then
    if wanted >= 100 and not off_order and not polluted and not has_seen_queues then
      -- A signpost for others, visible at once and gone with this transaction: a shared lock, so that nobody ever waits for it.
      perform pg_advisory_xact_lock_shared(post_tag << 48 | from_id);
    end if;
    with claimed as (
      update graphile_worker._private_jobs as job
      set attempts = job.attempts + 1, locked_by = pool_id, locked_at = instant
      where job.ctid = any (taken)
      returning job.id, job.job_queue_id, job.task_id, job.payload, job.priority, job.run_at, job.attempts, job.max_attempts,
        job.last_error, job.created_at, job.updated_at, job.key, job.revision, job.flags,
        -- A large payload is asked for by itself: in one text with others it would be copied several times, here and there.
        pg_column_size(job.payload) > 8000
          or (pg_column_size(job.payload) > 1000 and pg_column_compression(job.payload) is not null) as is_large
    )
    select
      '[' || string_agg(
        -- Written out by hand: json_build_array looks up the type of every value of every row, which costs several times more.
        -- JSON has no infinite numbers, so an infinite time becomes one that is far out of range.
        concat(
          '["', claimed.id, '",', coalesce(claimed.job_queue_id::text, 'null'), ',', claimed.task_id, ',',
          case when claimed.is_large then 'null' else claimed.payload::text end, ',',
          claimed.priority, ',', least(greatest(date_part('epoch', claimed.run_at), -1e15), 1e15), ',', claimed.attempts, ',', claimed.max_attempts, ',',
          case when claimed.last_error is null then 'null' else to_json(claimed.last_error)::text end, ',',
          least(greatest(date_part('epoch', claimed.created_at), -1e15), 1e15), ',',
          least(greatest(date_part('epoch', claimed.updated_at), -1e15), 1e15), ',',
          case when claimed.key is null then 'null' else to_json(claimed.key)::text end, ',', claimed.revision, ',',
          coalesce(claimed.flags::text, 'null'), case when claimed.is_large then ',1]' else ']' end
        ),
        ',' order by claimed.priority, claimed.run_at, claimed.id
      ) || ']',
      array_agg(distinct claimed.job_queue_id) filter (where claimed.job_queue_id is not null)
    into jobs, mine
    from claimed;

    if mine is not null then
      update graphile_worker._private_job_queues
      set locked_by = pool_id, locked_at = instant
      where id = any (mine);
    elsif relaxed then
      -- If the server crashes, the claim is forgotten and the job runs again, which it must be ready for anyway. The settle that
      -- follows is durable, and flushes everything before it. A claim in a named queue must last: were it forgotten, the next
      -- job of the queue could start while this one is still running.
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;

  if not has_seen_queues then
    reached := array_to_json(marks)::text;
  end if;

  if room > 0 then
    -- Somebody holds the row of a queue, but not the queue: a claim in progress. Worth another look very soon.
    contended := missed > max_missed or exists (
      select from graphile_worker._private_job_queues where id = any (refused) and is_available
    );

    level := -32769;
    loop
      select job.priority into level
      from graphile_worker._private_jobs as job
      where job.is_available and job.priority > level
      order by job.priority
      limit 1;
      exit when not found;

      -- If the nearest are all of tasks that we lack, look again when the last of them falls due.
      select coalesce(min(head.run_at) filter (where head.task_id = any (task_ids)), max(head.run_at)) into next_due
      from (
        select job.run_at, job.task_id
        from graphile_worker._private_jobs as job
        where job.is_available and job.priority = level and job.run_at > instant
        order by job.run_at, job.id
        limit 64
      ) as head;
      due := least(due, next_due);
    end loop;
    due_in_ms := date_part('epoch', due - instant) * 1000;
  end if;
end;
$hathi$;

create function graphile_worker._hathi_complete_jobs(pool_id text, job_ids bigint[], queue_ids integer[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  done bigint[];
  missing bigint[];
begin
  with gone as (
    delete from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    returning id
  )
  select array_agg(gone.id) into done from gone;
  missing := graphile_worker._hathi_missing(job_ids, done);
  perform graphile_worker._hathi_release_queues(pool_id, queue_ids, missing is not null);
  return missing;
end;
$hathi$;

create function graphile_worker._hathi_fail_jobs(pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  done bigint[];
  missing bigint[];
begin
  with failed as (
    update graphile_worker._private_jobs as job
    set
      last_error = end_of.error,
      run_at = greatest(now(), job.run_at) + exp(least(job.attempts, 10)) * interval '1 second',
      locked_by = null,
      locked_at = null,
      payload = coalesce(end_of.payload::json, job.payload)
    from unnest(job_ids, tries, errors, payloads) as end_of (id, attempts, error, payload)
    where job.id = end_of.id
      and job.locked_by = pool_id
      -- Not a later attempt, which this pool may have begun after an earlier try whose answer was lost; but a retired job has
      -- used up all of them.
      and job.attempts in (end_of.attempts, job.max_attempts)
    returning job.id
  )
  select array_agg(failed.id) into done from failed;
  missing := graphile_worker._hathi_missing(job_ids, done);
  perform graphile_worker._hathi_release_queues(pool_id, queue_ids, missing is not null);
  return missing;
end;
$hathi$;

create function graphile_worker._hathi_find_dead_workers(threshold interval, resilience double precision, resilient_flags text[], grace interval, with_orphans boolean)
 RETURNS TABLE(worker_id text, reason text, last_heartbeat_at timestamp with time zone, metadata jsonb)
 LANGUAGE plpgsql
AS $hathi$
#variable_conflict use_column
declare
  candidate record;
  is_lost boolean;
begin
  -- One whose row is locked is giving a sign of life right now.
  for candidate in
    select worker.id, worker.last_heartbeat_at as beat_at, worker.metadata, line.lost_at
    from graphile_worker._private_workers as worker
    left join graphile_worker._hathi_worker_lines as line on line.id = worker.id
    where worker.last_heartbeat_at < now() - threshold or line.lost_at <= now() - grace
    order by worker.id
    for update of worker skip locked
  loop
    is_lost := candidate.lost_at <= now() - grace
      and pg_try_advisory_xact_lock_shared(graphile_worker._hathi_line_key(candidate.id));
    continue when not coalesce(is_lost, false) and candidate.beat_at >= now() - threshold;
    perform 1
    from graphile_worker._private_jobs as job
    cross join unnest(resilient_flags) as flag
    where job.locked_by = candidate.id
      and job.flags ? flag
      and job.flags -> flag not in ('false'::jsonb, 'null'::jsonb, '0'::jsonb, '""'::jsonb)
    limit 1;
    if found and candidate.beat_at >= now() - threshold * resilience then
      -- From here on only its beats count; it takes its line up again when it comes back.
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

create function graphile_worker._hathi_flags(flags text[])
 RETURNS jsonb
 LANGUAGE sql
 IMMUTABLE
AS $hathi$
  select jsonb_object_agg(flag, true) from unnest(flags) as flag;
$hathi$;

create function graphile_worker._hathi_free_keys(keys text[])
 RETURNS void
 LANGUAGE plpgsql
AS $hathi$
declare
  held bigint[];
begin
  select array_agg(job.id) filter (where not job.is_available) into held
  from (
    select id, is_available
    from graphile_worker._private_jobs
    where key = any (keys)
    order by key
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

create function graphile_worker._hathi_line_key(worker_id text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
AS $hathi$
  select hashtextextended('hathi worker ' || worker_id, 0);
$hathi$;

create function graphile_worker._hathi_lock_jobs(rows tid[], row_queues integer[], room integer, per_queue integer, task_ids integer[], instant timestamp with time zone, INOUT mine integer[], INOUT refused integer[], OUT locked tid[], OUT excluded integer)
 RETURNS record
 LANGUAGE plpgsql
AS $hathi$
declare
  unseen integer[];
  won integer[];
  wanted record;
  has_passed_over boolean;
begin
  if array_remove(row_queues, null) = '{}' then
    -- `+ 0`, so that no partial index looks like a better way to the rows than their addresses.
    select coalesce(array_agg(job.ctid), '{}') into locked
    from (
      select candidate.ctid
      from graphile_worker._private_jobs as candidate
      where candidate.ctid = any (rows[1:room])
        and candidate.locked_at is null
        and candidate.attempts + 0 < candidate.max_attempts
        and candidate.job_queue_id is null
        and candidate.run_at <= instant
        and candidate.task_id = any (task_ids)
      for update skip locked
    ) as job;
    excluded := 0;
    return;
  end if;

  select array_agg(queue_id) into unseen
  from (
    select distinct queue_id from unnest(row_queues) as queue_id where queue_id is not null
    except select unnest(mine)
    except select unnest(refused)
  ) as fresh;

  if unseen is not null then
    select coalesce(array_agg(queue.id), '{}') into won
    from (
      select id
      from graphile_worker._private_job_queues
      where id = any (unseen) and is_available
      for update skip locked
    ) as queue;
    mine := mine || won;
    if cardinality(won) < cardinality(unseen) then
      refused := refused || array(select unnest(unseen) except select unnest(won));
    end if;
  end if;

  if cardinality(refused) = 0 and cardinality(rows) <= per_queue then
    select rows, row_queues as queues into wanted;
  else
    select
      coalesce(array_agg(entry.tid order by entry.position) filter (where entry.is_ours), '{}') as rows,
      coalesce(array_agg(entry.queue_id order by entry.position) filter (where entry.is_ours), '{}') as queues
    into wanted
    from (
      select entry.tid, entry.position, entry.queue_id,
        entry.queue_id is null
          or (
            entry.queue_id <> all (refused)
            and row_number() over (partition by entry.queue_id order by entry.position) <= per_queue
          ) as is_ours
      from unnest(rows, row_queues) with ordinality as entry (tid, queue_id, position)
    ) as entry;
  end if;
  excluded := cardinality(rows) - cardinality(wanted.rows);

  -- The conditions stand here again because a row may have changed since it was read. `is_available` is spelt out for the
  -- same reason as above.
  select coalesce(array_agg(job.ctid), '{}') into locked
  from (
    select candidate.ctid
    from unnest(wanted.rows[1:room], wanted.queues[1:room]) as entry (tid, queue_id)
    join graphile_worker._private_jobs as candidate
      on candidate.ctid = entry.tid
      and candidate.job_queue_id is not distinct from entry.queue_id
    where candidate.locked_at is null
      and candidate.attempts < candidate.max_attempts
      and candidate.run_at <= instant
      and candidate.task_id = any (task_ids)
    for update of candidate skip locked
  ) as job;

  -- A job that could not be locked may have been claimed and given back since it was read: what comes after it in its queue
  -- must wait for it.
  if cardinality(locked) < least(room, cardinality(wanted.rows)) then
    locked := array(
      select entry.tid
      from (
        select entry.tid, entry.queue_id, entry.is_locked,
          bool_and(entry.is_locked) over (partition by entry.queue_id order by entry.position) as is_unbroken
        from (
          select tid, queue_id, position, tid = any (locked) as is_locked
          from unnest(wanted.rows[1:room], wanted.queues[1:room]) with ordinality as entry (tid, queue_id, position)
        ) as entry
      ) as entry
      where entry.is_locked and (entry.queue_id is null or entry.is_unbroken)
    );
  end if;

  -- A queue that gave all that was wanted of it, or of which a job was passed over, gives nothing more: what comes later in
  -- line must not overtake what was left. Sets are compared by grouping, since each with each would cost more than the locks.
  has_passed_over := excluded > 0 or cardinality(locked) < least(room, cardinality(rows));
  if cardinality(locked) < room then
    refused := refused || array(
      select queue_id from unnest(row_queues) as queue_id where queue_id is not null group by queue_id having count(*) >= per_queue
    );
    if has_passed_over then
      refused := refused || array(
        select distinct entry.queue_id
        from (
          select entry.tid, max(entry.queue_id) as queue_id, max(entry.is_locked) as is_locked
          from (
            select tid, queue_id, 0 as is_locked from unnest(rows, row_queues) as row (tid, queue_id)
            union all
            select tid, null, 1 from unnest(locked) as tid
          ) as entry
          group by entry.tid
        ) as entry
        where entry.queue_id is not null and entry.is_locked = 0
      );
    end if;
  end if;
end;
$hathi$;

create function graphile_worker._hathi_merge_payloads(had json, given json)
 RETURNS json
 LANGUAGE sql
 IMMUTABLE
AS $hathi$
  select case
    when json_typeof(had) = 'array' and json_typeof(given) = 'array' then (had::jsonb || given::jsonb)::json
    else given
  end;
$hathi$;

create function graphile_worker._hathi_missing(asked bigint[], done bigint[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 IMMUTABLE
AS $hathi$
begin
  if cardinality(asked) = cardinality(done) then
    return null;
  end if;
  return array(select id from unnest(asked) as id where id <> all (coalesce(done, '{}')));
end;
$hathi$;

create function graphile_worker._hathi_queue_id(wanted text)
 RETURNS integer
 LANGUAGE plpgsql
AS $hathi$
declare
  found_id integer;
begin
  if wanted is null then
    return null;
  end if;
  loop
    select id into found_id from graphile_worker._private_job_queues where queue_name = wanted;
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

create function graphile_worker._hathi_recover_jobs(worker_ids text[], delay interval, max_crashes integer, kept bigint[])
 RETURNS TABLE(job_id bigint, worker_id text, is_suspect boolean)
 LANGUAGE plpgsql
AS $hathi$
#variable_conflict use_column
declare
  held bigint[];
  owners text[];
  suspects bigint[];
begin
  -- The rows are locked first, so that a retirement that is under way is waited for and then seen.
  select array_agg(job.id), array_agg(job.locked_by) into held, owners
  from (
    select id, locked_by
    from graphile_worker._private_jobs
    where locked_by = any (worker_ids) and id <> all (kept)
    order by id
    for update
  ) as job;

  if held is not null then
    -- Of what a worker held, it can have started as many as it has slots, in the order of its claims and one of each queue.
    -- The rest waited in its buffer and is above suspicion.
    insert into graphile_worker._hathi_job_crashes as crash (job_id, attempt, crashes)
    select started.id, started.attempts, 1
    from (
      select head.id, head.attempts, head.locked_by,
        row_number() over (
          partition by head.locked_by order by head.locked_at, head.priority, head.run_at, head.id
        ) as nth
      from (
        select job.*,
          row_number() over (
            partition by job.locked_by, coalesce(job.job_queue_id, -job.id)
            order by job.locked_at, job.priority, job.run_at, job.id
          ) as nth_of_queue
        from graphile_worker._private_jobs as job
        where job.id = any (held)
      ) as head
      where head.nth_of_queue = 1
    ) as started
    join graphile_worker._private_workers as worker on worker.id = started.locked_by
    where started.nth <= case
      when jsonb_typeof(worker.metadata -> 'concurrency') = 'number' then (worker.metadata ->> 'concurrency')::numeric
    end
    on conflict (job_id) do update set
      attempt = excluded.attempt,
      crashes = case when crash.attempt = excluded.attempt then crash.crashes + 1 else 1 end;

    with guilty as (
      delete from graphile_worker._hathi_job_crashes as crash
      where crash.job_id = any (held) and crash.crashes >= max_crashes
      returning crash.job_id
    )
    select array_agg(guilty.job_id) into suspects from guilty;
    delete from graphile_worker._hathi_job_crashes as crash
    where not exists (select from graphile_worker._private_jobs as job where job.id = crash.job_id);

    update graphile_worker._private_jobs as job
    set
      attempts = case
        when exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)
          then job.attempts
        when job.id = any (suspects) then job.max_attempts
        else greatest(0, job.attempts - 1)
      end,
      run_at = greatest(job.run_at, now() + delay),
      last_error = case
        when job.id = any (suspects) then format(
          'The worker died while this job was running, %s times in a row. The job was failed for good, so that it '
            || 'cannot take more workers down; find the cause, then reschedule it.', max_crashes)
        else 'Job recovered after worker interruption'
      end,
      updated_at = now(),
      locked_by = null,
      locked_at = null
    where job.id = any (held);
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(held) || '}');
  end if;

  update graphile_worker._private_job_queues as queue
  set locked_by = null, locked_at = null
  where queue.locked_by = any (worker_ids)
    and not exists (
      select from graphile_worker._private_jobs as job
      where job.id = any (kept) and job.job_queue_id = queue.id and job.locked_by = queue.locked_by
    );

  return query
    select entry.id, entry.owner, coalesce(entry.id = any (suspects), false)
    from unnest(held, owners) as entry (id, owner);
end;
$hathi$;

create function graphile_worker._hathi_release_queues(pool_id text, queue_ids integer[], in_doubt boolean)
 RETURNS void
 LANGUAGE plpgsql
AS $hathi$
begin
  if queue_ids is null then
    return;
  end if;
  if in_doubt then
    queue_ids := array(
      select unnest(queue_ids)
      except
      select job.job_queue_id
      from graphile_worker._private_jobs as job
      where job.job_queue_id = any (queue_ids) and job.locked_by = pool_id
    );
  end if;
  update graphile_worker._private_job_queues
  set locked_by = null, locked_at = null
  where id = any (queue_ids) and locked_by = pool_id;
end;
$hathi$;

create function graphile_worker._hathi_remember_worker()
 RETURNS trigger
 LANGUAGE plpgsql
AS $hathi$
begin
  insert into graphile_worker._hathi_former_workers (id) values (old.id)
  on conflict (id) do update set left_at = now();
  return null;
end;
$hathi$;

create function graphile_worker._hathi_return_jobs(pool_id text, job_ids bigint[], queue_ids integer[], delay interval, error_message text)
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET plan_cache_mode TO 'force_generic_plan'
AS $hathi$
declare
  ours bigint[];
  missing bigint[];
begin
  select array_agg(job.id) into ours
  from (
    select id
    from graphile_worker._private_jobs
    where id = any (job_ids) and locked_by = pool_id
    order by id
    for update
  ) as job;
  update graphile_worker._private_jobs as job
  set
    attempts = case
      when exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id) then job.attempts
      else greatest(0, job.attempts - 1)
    end,
    run_at = case when delay is null then job.run_at else greatest(job.run_at, now() + delay) end,
    last_error = coalesce(error_message, job.last_error),
    locked_by = null,
    locked_at = null
  where job.id = any (ours);
  missing := graphile_worker._hathi_missing(job_ids, ours);
  perform graphile_worker._hathi_release_queues(pool_id, queue_ids, missing is not null);
  if ours is not null then
    perform pg_notify('jobs:insert', '{"r":' || random() || ',"count":' || cardinality(ours) || '}');
  end if;
  return missing;
end;
$hathi$;

create function graphile_worker._hathi_task_id(wanted text)
 RETURNS integer
 LANGUAGE plpgsql
AS $hathi$
declare
  found_id integer;
begin
  loop
    select id into found_id from graphile_worker._private_tasks where identifier = wanted;
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

create function graphile_worker._hathi_watch_lines(grace interval)
 RETURNS double precision
 LANGUAGE plpgsql
AS $hathi$
declare
  line record;
  first_lost timestamptz;
begin
  for line in select id, lost_at from graphile_worker._hathi_worker_lines order by id loop
    if pg_try_advisory_xact_lock_shared(graphile_worker._hathi_line_key(line.id)) then
      if line.lost_at is null then
        update graphile_worker._hathi_worker_lines set lost_at = now() where id = line.id and lost_at is null;
      end if;
      first_lost := least(first_lost, coalesce(line.lost_at, now()));
    elsif line.lost_at is not null then
      update graphile_worker._hathi_worker_lines set lost_at = null where id = line.id;
    end if;
  end loop;
  return date_part('epoch', first_lost + grace - now()) * 1000;
end;
$hathi$;

create function graphile_worker.add_job(identifier text, payload json DEFAULT NULL::json, queue_name text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, job_key text DEFAULT NULL::text, priority integer DEFAULT NULL::integer, flags text[] DEFAULT NULL::text[], job_key_mode text DEFAULT 'replace'::text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
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
    or add_job.max_attempts < 1
  then
    perform graphile_worker._hathi_check_spec(
      add_job.identifier, add_job.queue_name, add_job.job_key, add_job.max_attempts
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
        (select task.id from graphile_worker._private_tasks as task where task.identifier = add_job.identifier),
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
AS $hathi$
declare
  keys text[];
  missing text[];
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
    perform graphile_worker._hathi_check_spec(bad.identifier, bad.queue_name, bad.job_key, bad.max_attempts);
  end if;

  -- In order of name, so that two calls with the same new names wait for each other instead of dead-locking.
  insert into graphile_worker._private_tasks (identifier)
    select distinct spec.identifier
    from unnest(specs) as spec
    where not exists (select from graphile_worker._private_tasks as task where task.identifier = spec.identifier)
    order by 1
    on conflict do nothing;
  insert into graphile_worker._private_job_queues (queue_name)
    select distinct spec.queue_name
    from unnest(specs) as spec
    where spec.queue_name is not null
      and not exists (select from graphile_worker._private_job_queues as queue where queue.queue_name = spec.queue_name)
    order by 1
    on conflict do nothing;

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

  -- What is written at once is the rule; a key held by a job that runs or is dead is freed, and its spec has another turn. The
  -- upsert leaves such a job locked by us, so what is decided on it is the truth. In order of key, as above.
  loop
    insert into graphile_worker._private_jobs as job
      (job_queue_id, task_id, payload, run_at, max_attempts, key, priority, flags)
    select queue.id, task.id,
      coalesce(spec.payload, '{}'::json), coalesce(spec.run_at, now()), coalesce(spec.max_attempts, 25::smallint),
      spec.job_key, coalesce(spec.priority, 0::smallint), case when spec.flags is not null then graphile_worker._hathi_flags(spec.flags) end
    from unnest(specs) as spec
    left join graphile_worker._private_tasks as task on task.identifier = spec.identifier
    left join graphile_worker._private_job_queues as queue on queue.queue_name = spec.queue_name
    where spec.job_key is not null and (missing is null or spec.job_key in (select unnest(missing)))
    order by spec.job_key
    on conflict (key) do update set
      job_queue_id = excluded.job_queue_id,
      task_id = excluded.task_id,
      payload = graphile_worker._hathi_merge_payloads(job.payload, excluded.payload),
      max_attempts = excluded.max_attempts,
      run_at = case
        when job_key_preserve_run_at and job.attempts = 0 then job.run_at
        else excluded.run_at
      end,
      priority = excluded.priority,
      revision = job.revision + 1,
      flags = excluded.flags,
      attempts = 0,
      last_error = null,
      updated_at = now()
    where job.is_available;
    get diagnostics written = row_count;
    exit when written = cardinality(coalesce(missing, keys));
    select array_agg(job.key) into missing
    from graphile_worker._private_jobs as job
    where job.key = any (coalesce(missing, keys)) and not job.is_available;
    exit when missing is null;
    perform graphile_worker._hathi_free_keys(missing);
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

create function graphile_worker.complete_jobs(job_ids bigint[])
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
AS $hathi$
  delete from graphile_worker._private_jobs
  where id = any (job_ids)
    and (locked_at is null or locked_at < now() - interval '4 hours')
  returning *;
$hathi$;

create function graphile_worker.delete_stale_workers(worker_ids text[])
 RETURNS void
 LANGUAGE sql
AS $hathi$
  delete from graphile_worker._private_workers where id = any (worker_ids);
$hathi$;

create function graphile_worker.force_unlock_workers(worker_ids text[])
 RETURNS void
 LANGUAGE sql
AS $hathi$
  update graphile_worker._private_jobs
  set locked_at = null, locked_by = null
  where locked_by = any (worker_ids);
  update graphile_worker._private_job_queues
  set locked_at = null, locked_by = null
  where locked_by = any (worker_ids);
$hathi$;

create function graphile_worker.list_orphan_locked_workers(sweep_threshold interval)
 RETURNS TABLE(worker_id text)
 LANGUAGE sql
 STABLE
AS $hathi$
  select distinct lock.locked_by
  from (
    select job.locked_by, job.locked_at from graphile_worker._private_jobs as job where job.locked_at is not null
    union all
    select queue.locked_by, queue.locked_at from graphile_worker._private_job_queues as queue where queue.locked_at is not null
  ) as lock
  where lock.locked_at < now() - sweep_threshold
    and not exists (select from graphile_worker._private_workers as worker where worker.id = lock.locked_by)
    and (
      lock.locked_at < now() - interval '4 hours'
      or exists (select from graphile_worker._hathi_former_workers as former where former.id = lock.locked_by)
    );
$hathi$;

create function graphile_worker.list_stale_workers(sweep_threshold interval)
 RETURNS TABLE(worker_id text)
 LANGUAGE sql
 STABLE
AS $hathi$
  select worker.id from graphile_worker._private_workers as worker where worker.last_heartbeat_at < now() - sweep_threshold;
$hathi$;

create function graphile_worker.permanently_fail_jobs(job_ids bigint[], error_message text DEFAULT NULL::text)
 RETURNS SETOF graphile_worker._private_jobs
 LANGUAGE sql
AS $hathi$
  with failed as (
    update graphile_worker._private_jobs
    set
      last_error = coalesce(error_message, 'Manually marked as failed'),
      attempts = max_attempts,
      updated_at = now()
    where id = any (job_ids)
      and (locked_at is null or locked_at < now() - interval '4 hours')
    returning *
  ), retired as (
    insert into graphile_worker._private_job_retirements (id)
    select id from failed where locked_at is not null
    on conflict do nothing
  )
  select * from failed;
$hathi$;

create function graphile_worker.recover_dead_worker_jobs(worker_ids text[], recovery_delay interval DEFAULT '00:00:00'::interval)
 RETURNS integer
 LANGUAGE sql
AS $hathi$
  select count(*)::integer from graphile_worker._hathi_recover_jobs(worker_ids, recovery_delay, null, '{}');
$hathi$;

create function graphile_worker.remove_job(job_key text)
 RETURNS graphile_worker._private_jobs
 LANGUAGE plpgsql
 STRICT
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
AS $hathi$
  with rescheduled as (
    update graphile_worker._private_jobs as job
    set
      run_at = coalesce(reschedule_jobs.run_at, job.run_at),
      priority = coalesce(reschedule_jobs.priority::smallint, job.priority),
      attempts = coalesce(reschedule_jobs.attempts::smallint, job.attempts),
      max_attempts = coalesce(reschedule_jobs.max_attempts::smallint, job.max_attempts),
      updated_at = now()
    where job.id = any (job_ids)
      and (job.locked_at is null or job.locked_at < now() - interval '4 hours')
    returning *
  ), wanted_again as (
    delete from graphile_worker._private_job_retirements where id in (select id from rescheduled)
  )
  select * from rescheduled;
$hathi$;

create function graphile_worker.worker_deregister(worker_id text)
 RETURNS void
 LANGUAGE sql
AS $hathi$
  delete from graphile_worker._private_workers where id = worker_deregister.worker_id;
$hathi$;

create function graphile_worker.worker_heartbeat(worker_id text, metadata json DEFAULT NULL::json)
 RETURNS void
 LANGUAGE sql
AS $hathi$
  insert into graphile_worker._private_workers as worker (id, last_heartbeat_at, metadata)
  values (worker_heartbeat.worker_id, now(), worker_heartbeat.metadata::jsonb)
  on conflict (id) do update set
    last_heartbeat_at = excluded.last_heartbeat_at,
    metadata = coalesce(excluded.metadata, worker.metadata);
$hathi$;
