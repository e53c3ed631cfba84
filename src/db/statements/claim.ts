import { shortPatienceMs, statement } from "../statement.ts";

/** The columns of a claimed job, in the order of the function's JSON; times are seconds since 1970, infinite ones ±1e15. */
export type ClaimedRow = readonly [
  id: string,
  jobQueueId: number | null,
  taskId: number,
  payload: unknown,
  priority: number,
  runAt: number,
  attempts: number,
  maxAttempts: number,
  lastError: string | null,
  createdAt: number,
  updatedAt: number,
  key: string | null,
  revision: number,
  flags: { [flag: string]: true } | null,
  /** The payload is not here: it is large, and to be had with `readPayloads`. */
  isLarge?: 1,
];

/** How far the jobs of one priority were taken. */
export type Mark = readonly [priority: number, runAt: string, id: string];

export interface ClaimParams {
  readonly poolId: string;
  /** The names by which this worker can be paused. */
  readonly workerNames?: readonly string[];
  readonly taskIds: readonly number[];
  readonly wanted: number;
  /** How many jobs of one named queue may be taken at once. */
  readonly perQueue: number;
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
  /** The worker's clock, or null for the database's. */
  readonly clock: Date | null;
  /** Where to start in each priority, and nothing else is scanned; empty for a full scan. */
  readonly marks: readonly Mark[];
  /** Whether to search all named queues for jobs, too. */
  readonly withQueues: boolean;
  /** Queues to take jobs from even if not all are searched. */
  readonly ownQueues?: readonly number[];
  /** The claim need not survive a crash of the server. */
  readonly relaxed: boolean;
}

export interface ClaimResultRow {
  /** JSON text of `ClaimedRow[]`; one value is many times cheaper to parse than rows of columns. */
  readonly jobs: string | null;
  /** When the next known job falls due, if a full scan found fewer than wanted; not above 0 if another transaction holds one that is due, or its queue. */
  readonly due_in_ms: number | null;
  /** JSON text of `Mark[]`, for the priorities whose jobs were taken. */
  readonly marks: string;
  /** What it took to find jobs outside of queues, and in them. */
  readonly tasks_ms: number;
  readonly queues_ms: number;
  /** Of `ownQueues`, those with a due job from which none was taken; null if there are none, or if all queues were searched. */
  readonly left_queues: readonly number[] | null;
  /** JSON text of `PauseReport`; null if nothing is paused. */
  readonly pauses: string | null;
  /** JSON text of `LimitReport`; null if none of the tasks is limited. */
  readonly limits: string | null;
}

const claim = {
  patienceMs: shortPatienceMs,
  givesWay: true as const,
  values: (params: ClaimParams) => [
    params.poolId,
    params.taskIds,
    params.wanted,
    params.perQueue,
    params.forbidden,
    params.accepted,
    params.clock,
    params.marks.map(([priority]) => priority),
    params.marks.map(([, runAt]) => runAt),
    params.marks.map(([, , id]) => id),
    params.withQueues ? null : (params.ownQueues ?? []),
    params.relaxed,
    params.workerNames ?? [],
  ],
};
/** What is paused, as a column of a claim. In a schema without pauses, it asks an empty table and no more. */
export function columnsOfPauses(names: string, clock: string): string {
  return `case when exists (select from graphile_worker._hathi_pauses)
        then graphile_worker._hathi_report_pauses(${names}::text[], ${clock}::timestamptz)
      end as pauses`;
}

/** Of a pool's tasks, those that are not paused. */
export function unpausedTasks(names: string, taskIds: string, clock: string): string {
  return `case when exists (select from graphile_worker._hathi_pauses)
        then graphile_worker._hathi_unpaused_tasks(${names}::text[], ${taskIds}::integer[], ${clock}::timestamptz)
        else ${taskIds}::integer[]
      end`;
}

const columns = `jobs, due_in_ms, marks, tasks_ms, queues_ms, left_queues,
      ${columnsOfPauses("$13", "$7")},
      case when exists (select from graphile_worker._hathi_limited_tasks)
        then graphile_worker._hathi_report_limits($2::integer[])
      end as limits`;
// Limited tasks have a claim of their own. Whether a task is limited is asked here, whatever the pool knows.
const claimed = `graphile_worker._hathi_claim_jobs(
      $1::text,
      case when exists (select from graphile_worker._hathi_limited_tasks)
        then graphile_worker._hathi_unlimited_tasks(${unpausedTasks("$13", "$2", "$7")})
        else ${unpausedTasks("$13", "$2", "$7")}
      end, $3::integer, $4::integer, $5::text[], $6::text[], $7::timestamptz,
      $8::smallint[], $9::timestamptz[], $10::bigint[], $11::integer[], $12::boolean
    )`;

/** Locks up to `wanted` due jobs for one pool. Rows another pool is claiming are skipped, not waited for. */
export const claimJobs = statement<ClaimParams, ClaimResultRow>({
  ...claim,
  name: "claim_jobs",
  text: `
    select ${columns}
    from ${claimed}`,
});

/** Begins a claim of a pool that sends heartbeats: `alive` has no row if the pool was declared dead or is about to be. */
export const whileAlive = `with alive as materialized (
      select id from graphile_worker._private_workers where id = $1::text for key share skip locked
    )`;

/** The same for a pool that sends heartbeats: gives no row, and claims nothing, if it was declared dead or is about to be. */
export const claimJobsAlive = statement<ClaimParams, ClaimResultRow>({
  ...claim,
  name: "claim_jobs_alive",
  text: `
    ${whileAlive}
    select ${columns}
    from alive
    cross join lateral ${claimed}`,
});

export interface AnnouncingParams extends ClaimParams {
  /** JSON of news for other processes, without its end. */
  readonly news: string;
  /** From how many claimed jobs on to send them. */
  readonly tellFrom: number;
}

export interface AnnouncingRow extends ClaimResultRow {
  /** How many of the tasks have still the ids that we know. */
  readonly known_tasks: number;
}

const announcing = {
  ...claim,
  values: (params: AnnouncingParams) => [...claim.values(params), params.news, params.tellFrom],
};
// While something is paused or limited, a scan says nothing about what others would find.
const announced = `(select count(*)::integer from graphile_worker._private_tasks where id = any ($2::integer[])) as known_tasks,
      case when taken.jobs >= $15::integer then pg_notify('hathi:fleet', $14::text
        || ',"full":' || (taken.jobs >= $3::integer)::text
        || ',"all":' || (coalesce(due_in_ms, 1::double precision) > 0::double precision and not exists (select from graphile_worker._hathi_pauses)
          and not exists (select from graphile_worker._hathi_limited_tasks))::text
        || ',"due":' || coalesce(due_in_ms::text, 'null') || '}')
      end`;
const counted =
  "cross join lateral (select coalesce(json_array_length(claimed.jobs::json), 0) as jobs offset 0) as taken";

/** `claimJobs` that also tells other processes, in the same transaction, that this one has scanned. */
export const claimJobsAnnouncing = statement<AnnouncingParams, AnnouncingRow>({
  ...announcing,
  name: "claim_jobs_announcing",
  text: `
    select ${columns.replace("jobs,", "claimed.jobs,")}, ${announced}
    from ${claimed} as claimed
    ${counted}`,
});

/** The same for `claimJobsAlive`. */
export const claimJobsAliveAnnouncing = statement<AnnouncingParams, AnnouncingRow>({
  ...announcing,
  name: "claim_jobs_alive_announcing",
  text: `
    ${whileAlive}
    select ${columns.replace("jobs,", "claimed.jobs,")}, ${announced}
    from alive
    cross join lateral ${claimed} as claimed
    ${counted}`,
});

/** What the slowest line that we are ready to wait for brings in a millisecond. */
const bytesPerMs = 100;

export interface ReadPayloadsParams {
  readonly poolId: string;
  readonly jobIds: readonly string[];
  /** A payload of more bytes than this is not sent, only its size. */
  readonly atMost: number;
}

export interface PayloadRow {
  readonly id: string;
  readonly bytes: number;
  /** JSON text; null if it is too large to be sent unasked. */
  readonly payload: string | null;
}

/** The payloads of jobs that are locked for a pool, as far as they are not too large. */
export const readPayloads = statement<ReadPayloadsParams, PayloadRow>({
  name: "read_payloads",
  patienceMs: shortPatienceMs,
  transferMs: ({ jobIds, atMost }) => (jobIds.length * atMost) / bytesPerMs,
  values: ({ poolId, jobIds, atMost }) => [poolId, jobIds, atMost],
  // `offset 0`, so that each payload is made into text once.
  text: `
    select job.id::text as id, octet_length(written.value) as bytes,
      case when octet_length(written.value) <= $3::integer then written.value end as payload
    from graphile_worker._private_jobs as job
    cross join lateral (select job.payload::text as value offset 0) as written
    where job.id = any ($2::bigint[]) and job.locked_by = $1::text`,
});

/** One payload of a size that is known. */
export const readPayload = statement<
  { readonly poolId: string; readonly jobId: string; readonly bytes: number },
  { readonly payload: string }
>({
  name: "read_payload",
  patienceMs: shortPatienceMs,
  transferMs: ({ bytes }) => bytes / bytesPerMs,
  values: ({ poolId, jobId }) => [poolId, jobId],
  text: `
    select job.payload::text as payload
    from graphile_worker._private_jobs as job
    where job.id = $2::bigint and job.locked_by = $1::text`,
});

export interface TaskRow {
  readonly id: number;
  readonly identifier: string;
}

/** Makes sure that the tasks have ids, and gives them; without those that another transaction is just adding. */
export const registerTasks = statement<{ identifiers: readonly string[] }, TaskRow>({
  name: "register_tasks",
  patienceMs: shortPatienceMs,
  givesWay: true,
  values: ({ identifiers }) => [identifiers],
  text: `
    select id, identifier from graphile_worker._hathi_register_tasks($1::text[])`,
});

/** The ids of those tasks that have one. */
export const findTasks = statement<{ identifiers: readonly string[] }, TaskRow>({
  name: "find_tasks",
  patienceMs: shortPatienceMs,
  values: ({ identifiers }) => [identifiers],
  text: `
    select id, identifier from graphile_worker._private_tasks where identifier = any ($1::text[])`,
});

export interface QueueNameRow {
  readonly id: number;
  readonly queue_name: string;
}

export const getQueueNames = statement<{ queueIds: readonly number[] }, QueueNameRow>({
  name: "get_queue_names",
  patienceMs: shortPatienceMs,
  values: ({ queueIds }) => [queueIds],
  text: `
    select id, queue_name from graphile_worker._private_job_queues where id = any ($1::integer[])`,
});
