-- How our workers take jobs and write how they ended. Functions, not statements, for one reason: a function brings its own
-- planner settings, so a plan made while the table was empty cannot turn into a full scan when it is not.
--
-- A claim reads the due jobs in their exact order (priority, run_at, id), a bounded piece at a time. Where most of what it
-- reads is not for it (tasks it lacks, queues that are held, rows others are taking), it goes another way: straight to the
-- range of each of its tasks, and to the heads of the free queues. So its cost does not grow with jobs that cannot run now.

create index _hathi_jobs_in_order on graphile_worker._private_jobs
  using btree (priority, run_at, id) include (task_id, job_queue_id)
  where is_available;
-- `is_available` in other words, so that a query in these words can use this index only: by its figures the planner often
-- prefers the one above, and then reads all jobs of other tasks.
create index _hathi_jobs_by_task on graphile_worker._private_jobs
  using btree (task_id, priority, run_at, id)
  where locked_at is null and attempts < max_attempts and job_queue_id is null;
create index _hathi_jobs_by_queue on graphile_worker._private_jobs
  using btree (job_queue_id, priority, run_at, id) include (task_id)
  where is_available and job_queue_id is not null;

-- A queue's row is written twice for every run of its jobs. With room in its page no index has to hear of it.
alter table graphile_worker._private_job_queues set (fillfactor = 40);

-- Locks as many of the given rows as there is room for, in the order given, and the queues they stand in. Queues seen before
-- are `mine` or `refused`; both lists come back longer. Rows and queues that somebody else is looking at are passed over;
-- `excluded` counts the rows whose queue was not to be had.
create or replace function graphile_worker._hathi_lock_jobs(
  rows tid[], row_queues integer[], room integer, per_queue integer, task_ids integer[], instant timestamptz,
  inout mine integer[], inout refused integer[], out locked tid[], out excluded integer
) language plpgsql volatile as $hathi$
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

create or replace function graphile_worker._hathi_claim_jobs(
  pool_id text,
  task_ids integer[],
  wanted integer,
  per_queue integer,
  forbidden text[],
  accepted text[],
  clock timestamptz,
  floor_priorities smallint[],
  floor_run_ats timestamptz[],
  floor_ids bigint[],
  between_floors boolean,
  off_order boolean,
  relaxed boolean,
  out jobs text,
  out due_in_ms double precision,
  out reached text,
  out polluted boolean,
  out contended boolean,
  out searched_ms double precision
) language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set enable_sort = off
  set enable_incremental_sort = off
  set enable_material = off
  set jit = off
  set plan_cache_mode = force_generic_plan
as $hathi$
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

-- Each of the three gives back the ids that were no longer ours; nothing was changed for those.

create or replace function graphile_worker._hathi_complete_jobs(pool_id text, job_ids bigint[], queue_ids integer[])
returns bigint[] language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
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

create or replace function graphile_worker._hathi_fail_jobs(
  pool_id text, job_ids bigint[], tries integer[], errors text[], payloads text[], queue_ids integer[]
) returns bigint[] language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set plan_cache_mode = force_generic_plan
as $hathi$
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

-- A retired job gets no attempt back: see `_private_job_retirements`. The rows are locked first, so that a retirement that
-- is under way is waited for and then seen.
create or replace function graphile_worker._hathi_return_jobs(
  pool_id text, job_ids bigint[], queue_ids integer[], delay interval, error_message text
) returns bigint[] language plpgsql volatile
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
as $hathi$
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

-- A job that is missing may have been settled by an earlier try whose answer was lost. Its queue was released then, and may
-- be ours again because of its next job, so it is released only if nothing of it is ours (`in_doubt`).
create or replace function graphile_worker._hathi_release_queues(pool_id text, queue_ids integer[], in_doubt boolean)
returns void language plpgsql volatile as $hathi$
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

create or replace function graphile_worker._hathi_missing(asked bigint[], done bigint[])
returns bigint[] language plpgsql immutable as $hathi$
begin
  if cardinality(asked) = cardinality(done) then
    return null;
  end if;
  return array(select id from unnest(asked) as id where id <> all (coalesce(done, '{}')));
end;
$hathi$;
