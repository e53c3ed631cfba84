import type { DbJob, JobKeyMode } from "../../job.ts";
import { statement } from "../statement.ts";
import { jobColumns } from "./job-columns.ts";

/** A job on its way into the database; null leaves the choice to the database's defaults. */
export interface NewJob {
  readonly identifier: string;
  /** JSON text. */
  readonly payload: string | null;
  readonly queueName: string | null;
  /** ISO 8601. */
  readonly runAt: string | null;
  readonly maxAttempts: number | null;
  readonly jobKey: string | null;
  readonly priority: number | null;
  readonly flags: readonly string[] | null;
}

/** Adds one job, in any key mode. */
export const addJob = statement<NewJob & { readonly jobKeyMode: JobKeyMode | null }, DbJob>({
  name: "add_job",
  values: (job) => [
    job.identifier,
    job.payload,
    job.queueName,
    job.runAt,
    job.maxAttempts,
    job.jobKey,
    job.priority,
    job.flags,
    job.jobKeyMode,
  ],
  text: `
    select ${jobColumns}
    from graphile_worker.add_job(
      identifier => $1::text,
      payload => $2::json,
      queue_name => $3::text,
      run_at => $4::timestamptz,
      max_attempts => $5::integer,
      job_key => $6::text,
      priority => $7::integer,
      flags => $8::text[],
      job_key_mode => $9::text
    ) as job`,
});

/** The same; a job of its key that is running is cancelled. */
export const replaceJob = statement<NewJob & { readonly jobKeyMode: JobKeyMode | null }, DbJob>({
  ...addJob,
  name: "replace_job",
  text: `
    select ${jobColumns}
    from graphile_worker._hathi_replace_job(
      $1::text, $2::json, $3::text, $4::timestamptz, $5::integer, $6::text, $7::integer, $8::text[], $9::text
    ) as job`,
});

export interface AddJobsParams {
  readonly jobs: readonly NewJob[];
  /** The keys of jobs that keep the `run_at` of the waiting job that they replace. */
  readonly preservingKeys: readonly string[] | null;
}

/** All jobs in one parameter; rows come back in their order. */
export const addJobs = statement<AddJobsParams, DbJob>({
  name: "add_jobs",
  values: ({ jobs, preservingKeys }) => [`[${jobs.map(toSpec).join(",")}]`, preservingKeys],
  text: `
    select ${jobColumns}
    from graphile_worker._hathi_add_specs(
      array(select pg_catalog.json_populate_recordset(null::graphile_worker.job_spec, $1::json)),
      $2::text[]
    ) as job`,
});

/** The payload is JSON already and is put in as it is. What is null is left out: most is, and the server reads the less. */
function toSpec({ identifier, payload, queueName, runAt, maxAttempts, jobKey, priority, flags }: NewJob): string {
  const spec = JSON.stringify({
    identifier,
    queue_name: queueName ?? undefined,
    run_at: runAt ?? undefined,
    max_attempts: maxAttempts ?? undefined,
    job_key: jobKey ?? undefined,
    priority: priority ?? undefined,
    flags: flags ?? undefined,
  });
  return payload === null ? spec : `${spec.slice(0, -1)},"payload":${payload}}`;
}

/** What only the database knows of jobs that were just added. */
export interface AddedRow {
  /** In the order of the jobs, with commas between. */
  readonly ids: string;
  readonly task_ids: number[];
  readonly queue_ids: number[] | null;
  readonly added_at: Date;
}

export interface PlainJobs {
  readonly jobs: readonly NewJob[];
  readonly tasks: Names;
  readonly queues: Names;
}

/** Adds many jobs without keys. */
export const addPlainJobs = statement<PlainJobs, AddedRow>({
  name: "add_plain_jobs",
  values: ({ jobs, tasks, queues }) => [
    tasks.names,
    tasks.positions,
    queues.names.length > 0 ? queues.names : null,
    queues.names.length > 0 ? queues.positions : null,
    jobs.map(({ payload }) => payload ?? "{}"),
    column(jobs, ({ runAt }) => runAt),
    column(jobs, ({ maxAttempts }) => maxAttempts),
    column(jobs, ({ priority }) => priority),
    column(jobs, ({ flags }) => flags && JSON.stringify(Object.fromEntries(flags.map((flag) => [flag, true])))),
  ],
  text: `
    select ids, task_ids, queue_ids, added_at
    from graphile_worker._hathi_add_jobs(
      $1::text[], $2::integer[], $3::text[], $4::integer[], $5::text[], $6::timestamptz[], $7::smallint[], $8::smallint[],
      $9::text[]
    )`,
});

/** Names, each once, and for every job the position (from 1) of its own. */
export interface Names {
  readonly names: readonly string[];
  readonly positions: readonly (number | null)[];
}

export function collectNames(wanted: readonly (string | null)[]): Names {
  const positionByName = new Map<string, number>();
  const positions = wanted.map((name) => {
    if (name === null) return null;
    let position = positionByName.get(name);
    if (position === undefined) {
      position = positionByName.size + 1;
      positionByName.set(name, position);
    }
    return position;
  });
  return { names: [...positionByName.keys()], positions };
}

function column<Value>(jobs: readonly NewJob[], get: (job: NewJob) => Value | null): (Value | null)[] | null {
  const values = jobs.map(get);
  return values.some((value) => value !== null && value !== undefined) ? values : null;
}
