import { statement } from "../statement.ts";

export interface BeatRow {
  /** False if the worker was taken for dead and its jobs were given to others. */
  readonly is_known: boolean;
  /** The server process we speak to: another one each time is the mark of a transaction pooler. */
  readonly pid: number;
  /** The newest breaking change of Graphile Worker's schema, and of what we add to it. */
  readonly breaking: number | null;
  readonly announced: number | null;
}

/** A sign of life. Unlike a registration it never brings back a worker that others have buried. */
export const beat = statement<{ id: string; metadata: object }, BeatRow>({
  name: "beat",
  values: ({ id, metadata }) => [id, JSON.stringify(metadata)],
  text: `
    with beaten as (
      update graphile_worker._private_workers
      set last_heartbeat_at = now(), metadata = (coalesce(metadata, '{}'::jsonb) - 'blocked'::text) || $2::jsonb
      where id = $1::text
      returning 1
    )
    select exists (select from beaten) as is_known, pg_backend_pid() as pid,
      (select max(id) from graphile_worker.migrations where breaking) as breaking,
      (select max(id) from graphile_worker._hathi_announced_migrations) as announced`,
});

/** What jobs are called. */
export const nameJobs = statement<{ jobIds: readonly string[] }, { readonly id: string; readonly task: string }>({
  name: "name_jobs",
  values: ({ jobIds }) => [jobIds],
  text: `
    select job.id::text as id, task.identifier as task
    from graphile_worker._private_jobs as job
    join graphile_worker._private_tasks as task on task.id = job.task_id
    where job.id = any ($1::bigint[])`,
});
