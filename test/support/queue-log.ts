import type { TestDatabase } from "./database.ts";
import type { Run } from "./worker-process.ts";

/** Lets the database itself write down who locks and releases named queues: each entry is made while the queue's row is locked. */
export async function logQueues(db: TestDatabase): Promise<void> {
  await db.pool.query(`
    create table public.queue_log (seq serial, at timestamptz default clock_timestamp(), queue_id integer, was text, "by" text);
    create function public.log_queue() returns trigger language plpgsql as $$
    begin
      insert into public.queue_log (queue_id, was, "by") values (new.id, old.locked_by, new.locked_by);
      return null;
    end $$;
    create trigger log_queue after update on graphile_worker._private_job_queues for each row execute function public.log_queue();`);
}

/** What became of the queues of these runs, for whoever has to find out why the runs overlap. */
export async function tellQueues(db: TestDatabase, overlaps: readonly (readonly Run[])[]): Promise<string> {
  const queueIds = overlaps.flatMap((runs) => runs.map(({ queueId }) => queueId));
  const rows = await db.query(
    `select queue_id, to_char(at, 'HH24:MI:SS.US') as at, was, "by" from public.queue_log where queue_id = any ($1) order by seq`,
    [queueIds],
  );
  return rows.map((row) => Object.values(row).join(" ")).join("\n");
}
