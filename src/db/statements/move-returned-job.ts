import { statement } from "../statement.ts";

/** Sets when a job that was just given back runs again; one that was taken, replaced or retired meanwhile is left alone. */
export const moveReturnedJob = statement<
  {
    readonly id: string;
    readonly revision: number;
    readonly runAt: Date;
    /** How many attempts count as used; null keeps what is there. */
    readonly attempts: number | null;
  },
  Record<string, never>
>({
  name: "move_returned_job",
  values: ({ id, revision, runAt, attempts }) => [id, revision, runAt.toISOString(), attempts],
  text: `
    update graphile_worker._private_jobs as job
    set
      run_at = $3::timestamptz,
      attempts = least(coalesce($4::integer, job.attempts), job.max_attempts),
      updated_at = now()
    where job.id = $1::bigint
      and job.revision = $2::integer
      and job.locked_by is null
      and not exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)`,
});
