import { shortPatienceMs, statement } from "../statement.ts";

/** What could not be written, or was written otherwise than it was asked to be. */
export interface UnwrittenRow {
  /** Jobs that were no longer this pool's; nothing was changed for those. */
  readonly lost: string[] | null;
  /** Jobs, and queues to release, whose rows another transaction holds: to be written later. */
  readonly held: string[] | null;
  readonly held_queues: number[] | null;
  /** Jobs that were to fail or to be put off, and had been cancelled: they are gone. */
  readonly cancelled?: string[] | null;
  /** Jobs that were to be put off, and failed. */
  readonly refused?: string[] | null;
}

/** Named queues to release with what is written. */
export interface Release {
  /** Null for none. */
  readonly queueIds: readonly number[] | null;
  /** Jobs of these queues that have ended and may still be locked: they are no reason to keep a queue. */
  readonly endedIds?: readonly string[];
}

/** Deletes done jobs and releases the queues that are through. */
export const completeJobs = statement<{ poolId: string; jobIds: readonly string[] } & Release, UnwrittenRow>({
  name: "complete_jobs",
  patienceMs: shortPatienceMs,
  givesWay: true,
  // Written out here, since the driver looks at every element of an array by itself.
  values: ({ poolId, jobIds, queueIds, endedIds = [] }) => [poolId, `{${jobIds.join(",")}}`, queueIds, endedIds],
  text: `
    select lost, held, held_queues
    from graphile_worker._hathi_complete_jobs($1::text, $2::bigint[], $3::integer[], $4::bigint[])`,
});

/** Unlocks failed jobs for a later try (or leaves them, if that was the last), with their error and perhaps a smaller payload. */
export const failJobs = statement<
  {
    poolId: string;
    jobIds: readonly string[];
    /** The attempts that failed. */
    attempts: readonly number[];
    errors: readonly string[];
    /** JSON texts; null keeps the payload. */
    payloads: readonly (string | null)[];
    /** An earlier try may have gone through. */
    isInDoubt: boolean;
  } & Release,
  UnwrittenRow
>({
  name: "fail_jobs",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, jobIds, attempts, errors, payloads, queueIds, endedIds = [], isInDoubt }) => [
    poolId,
    jobIds,
    attempts,
    errors,
    payloads,
    queueIds,
    endedIds,
    isInDoubt,
  ],
  text: `
    select lost, held, held_queues, cancelled
    from graphile_worker._hathi_fail_jobs(
      $1::text, $2::bigint[], $3::integer[], $4::text[], $5::text[], $6::integer[], $7::bigint[], $8::boolean
    )`,
});

/** Puts jobs back in line with their attempt restored, and wakes the workers that may want them. */
export const returnJobs = statement<
  {
    poolId: string;
    jobIds: readonly string[];
    /** The attempts that they were claimed for; null for whichever they are on. */
    attempts: readonly number[] | null;
    /** They were running; then those that were removed or replaced meanwhile are kept as permanently failed. */
    hasStarted: boolean;
    /** How long they must rest first; null for not at all. */
    delayMs: number | null;
    /** What to note as their last error; null keeps what is there. */
    reason: string | null;
  } & Release,
  UnwrittenRow
>({
  name: "return_jobs",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, jobIds, attempts, queueIds, endedIds = [], hasStarted, delayMs, reason }) => [
    poolId,
    jobIds,
    attempts,
    queueIds,
    endedIds,
    hasStarted,
    delayMs,
    reason,
  ],
  text: `
    select lost, held, held_queues
    from graphile_worker._hathi_return_jobs(
      $1::text, $2::bigint[], $3::integer[], $4::integer[], $5::bigint[], $6::boolean,
      $7::double precision * interval '1 millisecond', $8::text
    )`,
});

export interface MoveParams {
  readonly id: string;
  readonly revision: number;
  readonly runAt: Date;
  /** How many attempts count as used; null keeps what is there. */
  readonly attempts: number | null;
}

/**
 * Sets when a job that was just returned runs again; one that was taken, replaced or retired meanwhile is left alone. `is_held` says
 * that another transaction holds it, so that nothing was changed yet.
 */
export const moveReturnedJob = statement<MoveParams, { readonly is_held: boolean }>({
  name: "move_returned_job",
  patienceMs: shortPatienceMs,
  values: ({ id, revision, runAt, attempts }) => [id, revision, runAt.toISOString(), attempts],
  text: `
    with returned as materialized (
      select job.id
      from graphile_worker._private_jobs as job
      where job.id = $1::bigint
        and job.revision = $2::integer
        and job.locked_by is null
        and not exists (select from graphile_worker._private_job_retirements as retired where retired.id = job.id)
    ), free as materialized (
      select job.id
      from graphile_worker._private_jobs as job
      where job.id in (select returned.id from returned) and job.revision = $2::integer and job.locked_by is null
      for update skip locked
    ), moved as (
      update graphile_worker._private_jobs as job
      set
        run_at = $3::timestamptz,
        attempts = least(coalesce($4::integer, job.attempts), job.max_attempts),
        updated_at = now()
      from free
      where job.id = free.id
      returning job.id
    )
    select exists (select from returned) and not exists (select from moved) as is_held`,
});

/** Returns whatever is locked by a pool and not among what it holds: jobs with their attempt restored, and queues. */
export const returnStrays = statement<
  { poolId: string; heldJobIds: readonly string[]; heldQueueIds: readonly number[] },
  UnwrittenRow
>({
  name: "return_strays",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ poolId, heldJobIds, heldQueueIds }) => [poolId, heldJobIds, heldQueueIds],
  text: `
    select lost, held, held_queues
    from graphile_worker._hathi_return_jobs(
      $1::text,
      array(select id from graphile_worker._private_jobs where locked_by = $1::text and id <> all ($2::bigint[])),
      null,
      array(select id from graphile_worker._private_job_queues where locked_by = $1::text and id <> all ($3::integer[])),
      '{}',
      false,
      null,
      null
    )`,
});

/** Wakes workers if any of these queues is free and has a job that is due. */
export const announceQueues = statement<{ queueIds: readonly number[]; clock: Date | null }, never>({
  name: "announce_queues",
  patienceMs: shortPatienceMs,
  values: ({ queueIds, clock }) => [queueIds, clock],
  text: `
    select pg_notify('jobs:insert', pg_catalog.json_build_object('r', random(), 'count', count(*))::text)
    from graphile_worker._private_job_queues as queue
    where queue.id = any ($1::integer[])
      and queue.is_available
      and exists (
        select from graphile_worker._private_jobs as job
        where job.job_queue_id = queue.id and job.is_available and job.run_at <= coalesce($2::timestamptz, now())
      )
    having count(*) > 0`,
});
