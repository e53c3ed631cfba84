import type { Client } from "pg";
import type { TestDatabase } from "../../support/database.ts";

/** One job of a random table. Times are seconds from now. */
export interface TableJob {
  readonly task: number;
  readonly priority: number;
  readonly queue: number | null;
  readonly runIn: number;
  readonly flag: "a" | "b" | null;
  readonly state: "waiting" | "running" | "dead";
  /** Another transaction has locked the row. */
  readonly isHeld: boolean;
}

interface TableQueue {
  readonly isTaken: boolean;
  /** Another transaction has locked the row. */
  readonly isHeld: boolean;
}

export interface Table {
  readonly jobs: readonly TableJob[];
  readonly queues: readonly TableQueue[];
  /** How many jobs stand in line before all others that cannot run: behind a queue that is taken, or of a task that is not known. */
  readonly stuck: { readonly count: number; readonly kind: "queue" | "task" };
}

export interface Request {
  readonly tasks: readonly number[];
  readonly wanted: number;
  readonly perQueue: number;
  readonly forbidden: readonly string[] | null;
  readonly accepted: readonly string[] | null;
}

const unknownTask = 9;

/** Puts the table into an empty database; ids are positions, from 1. */
export async function fillTable(db: TestDatabase, { jobs, queues, stuck }: Table): Promise<void> {
  await db.query(`
    truncate graphile_worker._private_jobs, graphile_worker._private_job_queues, graphile_worker._private_tasks restart identity`);
  await db.query(
    "insert into graphile_worker._private_tasks (identifier) select 'task ' || n from generate_series(1, 9) as n",
  );
  await db.query(
    `insert into graphile_worker._private_job_queues (queue_name, locked_at, locked_by)
     select 'queue ' || nth, case when taken then now() end, case when taken then 'other' end
     from unnest($1::boolean[]) with ordinality as queue (taken, nth)`,
    [[...queues.map(({ isTaken }) => isTaken), true]],
  );
  await db.query(
    `insert into graphile_worker._private_jobs (task_id, priority, job_queue_id, run_at, flags, attempts, max_attempts, locked_at, locked_by)
     select task, priority, queue, now() + run_in * interval '1 second', flags,
       case when state = 'waiting' then 0 else 1 end, case when state = 'dead' then 1 else 25 end,
       case when state = 'running' then now() end, case when state = 'running' then 'other' end
     from unnest($1::int[], $2::int[], $3::int[], $4::float[], $5::jsonb[], $6::text[])
       as job (task, priority, queue, run_in, flags, state)`,
    [
      jobs.map(({ task }) => task),
      jobs.map(({ priority }) => priority),
      jobs.map(({ queue }) => queue),
      jobs.map(({ runIn }) => runIn),
      jobs.map(({ flag }) => flag && JSON.stringify({ [flag]: true })),
      jobs.map(({ state }) => state),
    ],
  );
  await db.query(
    `insert into graphile_worker._private_jobs (task_id, priority, job_queue_id, run_at)
     select $2, -5, $3::int, now() - interval '1 day' from generate_series(1, $1)`,
    [stuck.count, stuck.kind === "task" ? unknownTask : 1, queues.length + 1],
  );
}

/** Locks the rows that are held, in a transaction that the caller ends. */
export async function holdRows(client: Client, { jobs, queues }: Table): Promise<void> {
  const positions = (held: readonly { isHeld: boolean }[]): number[] =>
    held.flatMap(({ isHeld }, index) => (isHeld ? [index + 1] : []));
  await client.query("begin");
  await client.query("select from graphile_worker._private_jobs where id = any ($1) for update", [positions(jobs)]);
  await client.query("select from graphile_worker._private_job_queues where id = any ($1) for update", [
    positions(queues),
  ]);
}

export interface Expected {
  /** Jobs outside of queues that can be had, in order. */
  readonly free: readonly number[];
  /** For each queue, the jobs that can be had, in order. */
  readonly queued: ReadonlyMap<number, readonly number[]>;
  /** The jobs that a claim with one job per queue gives, in order. */
  readonly inOrder: readonly number[];
  /** How many jobs a claim gives. */
  readonly count: number;
  /** Queues that nobody has taken, and of which another transaction holds the row or one of the first jobs. */
  readonly heldQueues: readonly number[];
  /** A due job is held by another transaction, or its queue is. */
  readonly isContended: boolean;
}

/** What a claim must give: the plain meaning of `order by priority, run_at, id for update skip locked`. */
export function expectClaim(table: Table, request: Request): Expected {
  const line = table.jobs
    .map((job, index) => ({ ...job, id: index + 1 }))
    .filter(({ state, runIn, task, flag }) => {
      const isForbidden = flag !== null && (request.forbidden?.includes(flag) ?? false);
      const isAccepted = request.accepted === null || (flag !== null && request.accepted.includes(flag));
      return state === "waiting" && runIn <= 0 && request.tasks.includes(task) && !isForbidden && isAccepted;
    })
    .sort((one, other) => one.priority - other.priority || one.runIn - other.runIn || one.id - other.id);

  const free = line.filter(({ queue, isHeld }) => queue === null && !isHeld);
  const heldQueues: number[] = [];
  const queued = new Map<number, typeof line>();
  for (const [index, { isTaken, isHeld }] of table.queues.entries()) {
    const jobs = line.filter(({ queue }) => queue === index + 1);
    if (isTaken || jobs.length === 0) continue;
    const firstHeld = jobs.slice(0, request.perQueue).findIndex((job) => job.isHeld);
    if (isHeld || firstHeld >= 0) heldQueues.push(index + 1);
    if (isHeld) continue;
    queued.set(index + 1, jobs.slice(0, firstHeld < 0 ? request.perQueue : firstHeld));
  }
  const heads = new Set([...queued.values()].flatMap(([head]) => (head ? [head.id] : [])));
  const total = free.length + [...queued.values()].reduce((sum, jobs) => sum + jobs.length, 0);
  const ids = (jobs: readonly { id: number }[]): number[] => jobs.map(({ id }) => id);
  return {
    free: ids(free),
    queued: new Map([...queued].map(([queue, jobs]) => [queue, ids(jobs)])),
    inOrder: ids(line.filter(({ id, queue, isHeld }) => (queue === null ? !isHeld : heads.has(id)))).slice(
      0,
      request.wanted,
    ),
    count: Math.min(request.wanted, total),
    heldQueues,
    isContended: heldQueues.length > 0 || line.some(({ queue, isHeld }) => queue === null && isHeld),
  };
}
