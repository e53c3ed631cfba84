import { statement } from "../statement.ts";
import type { NewJob } from "./new-job.ts";

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
