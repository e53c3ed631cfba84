-- How our workers take jobs.
--
-- What always holds (`docs/internals.md` lists the same six, with their tests):
--   1. A due, unlocked, suitable job for which there is room is claimed, or the claimer knows that it must scan again: at once, or as
--      soon as the budget of expensive scans allows (`scan-range.ts`). A row that another transaction has locked delays itself and
--      what stands behind it in its named queue, and nothing else.
--   2. No row counts twice. A claim returns as many jobs as wanted if that many can be had.
--   3. In a named queue nothing overtakes, except that a failed job waits for its back-off.
--   4. A claim, a settle or a return waits for no application's transaction: every lock it takes is taken with `skip locked`, and
--      `lock_timeout` bounds the one wait that PostgreSQL makes all the same (see the head of the settles). Every statement that locks several
--      rows and does wait, locks them in one order, which is there, too.
--   5. A job that has not started counts as waiting: the worker returns it about a fifth of a second after its claim, and what removed,
--      replaced or rescheduled it until then takes effect (`_hathi_return_jobs`).
--   6. No decision depends on a wall clock that can be set back. Workers wait by a monotonic clock; a claim says how long (`due_in_ms`), not until when.
--
-- Jobs without a queue are locked while they are read, one pass per task and priority, so PostgreSQL itself goes on past locked rows
-- (`_hathi_scan_tasks`). For a named queue the queue's row is locked first, and its jobs are read after that, from the front
-- (`_hathi_scan_queues`; off order, where thousands of jobs stand in the way, `_hathi_walk_queues`; without a search, where the pool knows which
-- queues it has just released, `_hathi_sort_queues`). When there was less to do than there is room, `_hathi_next_due` says when to scan again.
--
-- These are functions, not statements, because a function brings its own planner settings: a plan made while the table was empty
-- cannot turn into a full scan later, and neither can a role with `enable_tidscan = off`.

-- `is_available` is spelt out, so that a query with the same words can use this index only: going by its statistics the planner
-- often prefers another one, and then reads all jobs of other tasks.
create index _hathi_jobs_by_task on graphile_worker._private_jobs
  using btree (task_id, priority, run_at, id)
  where locked_at is null and attempts < max_attempts and job_queue_id is null;
-- The task comes first here as well, so that jobs of tasks that are paused, or that a worker lacks, are never read. The second one is
-- for one queue at a time; with other words, so that neither is taken for the other.
create index _hathi_jobs_in_queues on graphile_worker._private_jobs
  using btree (task_id, priority, run_at, id)
  where locked_at is null and attempts < max_attempts and job_queue_id is not null;
create index _hathi_jobs_by_queue on graphile_worker._private_jobs
  using btree (task_id, job_queue_id, priority, run_at, id)
  where is_available and job_queue_id is not null;

-- A queue's row is written twice for every run of its jobs. With free space in its page, its indexes need no new entries.
alter table graphile_worker._private_job_queues set (fillfactor = 40);

-- Gives each task a row, and tells the ids. A name that another transaction is just adding is left out after a moment: ids are asked for
-- before a claim, and a claim waits for no application. Its jobs cannot be seen before that transaction commits anyway.
create or replace function graphile_worker._hathi_register_tasks(names text[])
returns table (id integer, identifier text) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
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

-- Locks up to `wanted` due jobs that are in no queue, in the order of priority, run_at and id. Priorities are visited one by one, so
-- jobs for later are never read. Of each task a share is read; what lies behind the end of a share that was used up may not be next,
-- so it is left to another round with larger shares. (A row that is locked and left is free again when the claim commits.)
--
-- With marks, only the marked priorities are visited, each from its mark on. Without, `levels` are the priorities that had something
-- due, and `head_run_ats` and `head_ids` are just before the first job of each: everything up to there is finished and not vacuumed yet.
-- `level_ends` are positions in `rows`: how many rows had been locked when that priority was through.
create or replace function graphile_worker._hathi_scan_tasks(
  task_ids integer[], wanted integer, forbidden text[], accepted text[], instant timestamptz,
  mark_priorities smallint[], mark_run_ats timestamptz[], mark_ids bigint[],
  out rows tid[], out run_ats timestamptz[], out ids bigint[],
  out levels smallint[], out level_ends integer[], out head_run_ats timestamptz[], out head_ids bigint[],
  out next_due timestamptz
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
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

-- Of these tasks, the ones that have jobs waiting in named queues.
create or replace function graphile_worker._hathi_tasks_in_queues(task_ids integer[])
returns integer[] language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- Locks the given queues, in that order, and of each the first due jobs that suit, until there are as many as wanted. The jobs are read
-- after the lock on their queue, so nothing that has come back meanwhile is overtaken; and those behind a job that could not be
-- locked stay where they are. `contended` says that another transaction held a queue's row or a job, and had not taken it.
--
-- `shares` says how many jobs of each queue are likely to be taken: reading more would cost the product of jobs and queues. Only if the
-- shares do not fill the room are they read again with larger ones, up to `per_queue`.
create or replace function graphile_worker._hathi_lock_queues(
  candidates integer[], shares integer[], wanted integer, per_queue integer, task_ids integer[], forbidden text[], accepted text[], instant timestamptz,
  out rows tid[], out queue_ids integer[], out priorities smallint[], out run_ats timestamptz[], out ids bigint[], out contended boolean
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
as $hathi$
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

-- Of pairs of a task and a queue, the queues that are free and have a due job which suits, in the order of these jobs.
create or replace function graphile_worker._hathi_sort_queues(
  task_ids integer[], queue_ids integer[], forbidden text[], accepted text[], instant timestamptz
) returns integer[] language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- All free queues that have a due job which suits, in the order of these jobs, without those that are known. It visits every queue that has
-- jobs of these tasks, so what it takes depends on the number of queues and not on how many jobs stand in the way.
create or replace function graphile_worker._hathi_walk_queues(
  task_ids integer[], forbidden text[], accepted text[], instant timestamptz, known integer[]
) returns integer[] language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- Locks up to `wanted` due jobs of named queues, and their queues. Free queues are found by reading the due jobs in order, a share of each
-- task at a time, as `_hathi_scan_tasks` does. Where thousands of them cannot run (a held queue has a long line), the rest is found off
-- order, by a walk.
create or replace function graphile_worker._hathi_scan_queues(
  task_ids integer[], wanted integer, per_queue integer, forbidden text[], accepted text[], instant timestamptz,
  out rows tid[], out queue_ids integer[], out priorities smallint[], out run_ats timestamptz[], out ids bigint[], out contended boolean
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- When the next suitable job that is visible and not ours falls due. A time that has passed means that another transaction holds
-- that row at this moment. Called after a claim that visited all priorities; `levels` and the positions are `_hathi_scan_tasks`'.
create or replace function graphile_worker._hathi_next_due(
  task_ids integer[], forbidden text[], accepted text[], instant timestamptz,
  levels smallint[], head_run_ats timestamptz[], head_ids bigint[]
) returns timestamptz language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- Takes these jobs for a pool. Gives them as JSON, in the order of priority, run_at and id, without the brackets of an array.
create or replace function graphile_worker._hathi_take_in_order(pool_id text, instant timestamptz, rows tid[], out jobs text)
language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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

-- Claims up to `wanted` jobs for a pool, of one queue at most `per_queue`. Jobs with one of the `forbidden` flags, and those without one
-- of the `accepted` ones if there are any, are left alone. `mark_*` say where to start in each priority; then nothing else is visited.
-- `only_queues` are the named queues to visit, null for all: those that the pool has just released cost no search. `left_queues` are those of
-- them that are worth another visit: they had a due job, and none was taken, for want of room or because another transaction held it.
--
-- `jobs` is one JSON text. `marks` are, as JSON, the new ones: up to where the jobs of each priority were taken. `due_in_ms` is when
-- to scan again, unless there were as many jobs as wanted; not above zero if something was held by another transaction. The two times say what
-- the scans took without the rest of the claim.
create or replace function graphile_worker._hathi_claim_jobs(
  pool_id text,
  task_ids integer[],
  wanted integer,
  per_queue integer,
  forbidden text[],
  accepted text[],
  clock timestamptz,
  mark_priorities smallint[],
  mark_run_ats timestamptz[],
  mark_ids bigint[],
  only_queues integer[],
  relaxed boolean,
  out jobs text,
  out due_in_ms double precision,
  out marks text,
  out tasks_ms double precision,
  out queues_ms double precision,
  out left_queues integer[]
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '100ms'
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_indexscan = on
  set enable_indexonlyscan = on
  set enable_tidscan = on
  set enable_nestloop = on
  set enable_hashjoin = off
  set enable_mergejoin = off
  set enable_sort = off
  set enable_incremental_sort = off
  set enable_material = off
  set jit = off
  set extra_float_digits = 1
  set plan_cache_mode = force_generic_plan
as $hathi$
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
