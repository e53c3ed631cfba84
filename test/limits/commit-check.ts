import type { TestDatabase } from "../support/database.ts";

/** A limit as the check knows it; it works out keys itself, not with the functions that it checks. */
export interface CheckedLimit {
  readonly tasks: readonly string[];
  /** A key of the payload; none for a limit on everything. */
  readonly key?: string;
  readonly places: number;
}

export interface CommitCheck {
  /** What was above a limit when a transaction that locked a job was committed. */
  above(): Promise<unknown[]>;
  /** How many commits were checked. */
  commits(): Promise<number>;
  /** The most places of each limit that were taken at once, in the order of the limits. */
  most(): Promise<number[]>;
}

/**
 * Counts the locked rows as each transaction that locked one commits. The checks wait for each other, and a lock is released after its commit can be
 * seen, so no two transactions can exceed a limit together without the second of them noticing. What is found is kept, not refused: a refusal would mend it.
 */
export async function checkCommits(
  db: Pick<TestDatabase, "query">,
  limits: readonly CheckedLimit[],
): Promise<CommitCheck> {
  await db.query(`
    create schema check_limits;
    create table check_limits.limits (nth integer, tasks text[], key text, places integer);
    create table check_limits.above (nth integer, key text, places integer, taken bigint, at timestamptz default clock_timestamp());
    create table check_limits.most (nth integer primary key, taken bigint);
    create sequence check_limits.commits;
    create function check_limits.check() returns trigger language plpgsql as $check$
    declare
      me constant text := pg_current_xact_id()::text;
    begin
      if current_setting('check_limits.done', true) is not distinct from me then return null; end if;
      perform set_config('check_limits.done', me, true);
      perform pg_advisory_xact_lock(20201120);
      perform nextval('check_limits.commits');
      with taken as materialized (
        select l.nth, l.places, coalesce(job.payload ->> l.key, '') as key, count(*) as taken
        from check_limits.limits as l
        join graphile_worker._private_tasks as task on task.identifier = any (l.tasks)
        join graphile_worker._private_jobs as job on job.task_id = task.id and job.locked_at is not null
        group by 1, 2, 3
      ), kept as (
        insert into check_limits.above (nth, key, places, taken) select nth, key, places, taken from taken where taken > places
      )
      insert into check_limits.most as peak select nth, max(taken) from taken group by 1 order by 1
      on conflict (nth) do update set taken = greatest(peak.taken, excluded.taken);
      return null;
    end $check$;
    create constraint trigger check_limits after update on graphile_worker._private_jobs deferrable initially deferred
      for each row when (old.locked_at is null and new.locked_at is not null) execute function check_limits.check();`);
  for (const [nth, { tasks, key, places }] of limits.entries()) {
    await db.query("insert into check_limits.limits values ($1, $2, $3, $4)", [nth, tasks, key ?? null, places]);
  }
  return {
    above: () => db.query("select nth, key, places, taken::int as taken from check_limits.above order by at"),
    commits: async () => (await db.query<{ n: number }>("select last_value::int as n from check_limits.commits"))[0]!.n,
    most: async () =>
      (await db.query<{ n: number }>("select taken::int as n from check_limits.most order by nth")).map(({ n }) => n),
  };
}
