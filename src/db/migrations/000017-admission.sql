-- Which jobs their limits admit, and when each of them starts. 000015-limits.sql states what always holds.

-- False if another transaction kept one of them for too long.
create or replace function graphile_worker._hathi_lock_limits(limit_ids integer[])
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $hathi$
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

-- How many jobs of these tasks are locked; of one key, if a path is given.
create or replace function graphile_worker._hathi_count_locked(task_ids integer[], path text[], key text)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set jit = off
  set enable_indexscan = on set enable_indexonlyscan = on set enable_tidscan = on set enable_nestloop = on
as $hathi$
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

-- Of concurrency limits on everything whose rows are locked: null if one is exceeded or held back; otherwise whether three quarters of each are free.
create or replace function graphile_worker._hathi_are_within(limit_ids integer[])
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
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

-- By how many milliseconds a rate lets jobs be later than its slack at no cost, if they use so many tokens at once and tokens are spent `used_ms`
-- ahead: even if theirs are counted then, a tenth of the burst is left. Null if it does not.
create or replace function graphile_worker._hathi_rate_grace(
  burst integer, step double precision, tokens double precision, used_ms double precision
) returns double precision language plpgsql immutable set search_path = pg_catalog, pg_temp as $hathi$
begin
  return case when used_ms <= (burst * 0.9 - tokens) * step then least(150, burst * step / 2, (burst * 0.9 - tokens) * step) end;
end;
$hathi$;

-- How many tokens an unkeyed rate has for jobs that no slot is free for yet: of what may start within a good part of its slack half, since a token
-- is lost if its job cannot start in time; that is longer where the burst gives more. `ahead` is what a pool expects to start within 25 ms.
create or replace function graphile_worker._hathi_spare_tokens(
  bound_id integer, wanted integer, ahead integer, moment timestamptz, late_ms double precision
)
returns integer language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
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

-- Whether each of these unkeyed rates has tokens for four more claims of so many jobs.
create or replace function graphile_worker._hathi_have_tokens(limit_ids integer[], jobs integer, moment timestamptz)
returns boolean language plpgsql volatile set search_path = pg_catalog, pg_temp as $hathi$
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

-- Of jobs that this transaction has locked, says which their limits admit, in order, up to `most`, and when each one starts. All limits of
-- `limit_ids` are asked, whatever their kind; their rows are locked. A job behind one that was refused in its queue is refused, too. Spends the
-- tokens of rates, for starts that may be `late_ms` later than their slack allows. `release_at` is the first moment at which a rate would admit
-- a job that it refused now.
--
-- Starts are given in runs: the next `counts[n]` admitted jobs start from `start_ats[n]` on, `steps[n]` milliseconds apart, and may be `slacks[n]` late. A run
-- without a rate has no start.
create or replace function graphile_worker._hathi_admit_jobs(
  limit_ids integer[], rows tid[], queue_ids integer[], most integer, moment timestamptz, horizon timestamptz, late_ms double precision,
  out admitted integer[], out counts integer[], out start_ats timestamptz[], out steps double precision[], out slacks double precision[],
  out release_at timestamptz
) language plpgsql volatile
  set search_path = pg_catalog, pg_temp
as $hathi$
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
