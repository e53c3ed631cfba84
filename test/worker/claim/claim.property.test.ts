import fc from "fast-check";
import type { Client } from "pg";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { type Database, poolDatabase } from "../../../src/db/database.ts";
import { type ClaimedRow, type ClaimResultRow, claimJobs, type Mark } from "../../../src/db/statements/claim.ts";
import { freshDatabase, type TestDatabase } from "../../support/database.ts";
import { times } from "../../support/times.ts";
import { expectClaim, fillTable, holdRows, type Request, type Table, type TableJob } from "./claim-oracle.ts";

/*
 * Claims on random tables, with rows and queues locked by another transaction, against an oracle that knows nothing of indexes,
 * marks and shares. The invariants are those at the head of the claim's migration.
 */

const often = { weight: 4 };
const jobs = (maxLength: number): fc.Arbitrary<TableJob[]> =>
  fc.array(
    fc.record({
      task: fc.integer({ min: 1, max: 4 }),
      priority: fc.integer({ min: -1, max: 1 }),
      queue: fc.oneof({ ...often, arbitrary: fc.constant(null) }, fc.integer({ min: 1, max: 6 })),
      // Few different times, so that ids have to decide; some in the future.
      runIn: fc.constantFrom(-3000, -2000, -2000, -1000, -1, 3000),
      flag: fc.oneof({ ...often, arbitrary: fc.constant(null) }, fc.constantFrom("a" as const, "b" as const)),
      state: fc.oneof(
        { weight: 8, arbitrary: fc.constant("waiting" as const) },
        fc.constantFrom("running" as const, "dead" as const),
      ),
      isHeld: fc.oneof({ ...often, arbitrary: fc.constant(false) }, fc.boolean()),
    }),
    { maxLength, size: "max" },
  );
const queues = fc.array(
  fc.record({
    isTaken: fc.oneof({ ...often, arbitrary: fc.constant(false) }, fc.constant(true)),
    isHeld: fc.oneof({ ...often, arbitrary: fc.constant(false) }, fc.constant(true)),
  }),
  { minLength: 6, maxLength: 6 },
);
const inOrder = fc.constant({ count: 0, kind: "task" as const });
const offOrder = fc.record({ count: fc.constant(5_200), kind: fc.constantFrom("task" as const, "queue" as const) });
const table = (maxJobs: number, stuck: fc.Arbitrary<Table["stuck"]>): fc.Arbitrary<Table> =>
  fc.record({ jobs: jobs(maxJobs), queues, stuck });
const request: fc.Arbitrary<Request> = fc.record({
  tasks: fc.subarray([1, 2, 3, 4], { minLength: 1 }),
  wanted: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 500 })),
  perQueue: fc.oneof(fc.constant(1), fc.integer({ min: 2, max: 50 })),
  forbidden: fc.oneof({ ...often, arbitrary: fc.constant(null) }, fc.constant(["a"]), fc.constant(["a", "b"])),
  accepted: fc.oneof({ ...often, arbitrary: fc.constant(null) }, fc.constant(["a"]), fc.constant(["a", "b"])),
});

let db: TestDatabase;
let database: Database;
let holder: Client;

beforeAll(async () => {
  let drop = (): Promise<void> => Promise.resolve();
  db = await freshDatabase({ cleanUp: (given) => (drop = given) });
  database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  holder = new pg.Client({ connectionString: db.url });
  await holder.connect();
  return async () => {
    await holder.end();
    await drop();
  };
});

interface Claim {
  readonly ids: number[];
  readonly queueById: Map<number, number | null>;
  readonly result: ClaimResultRow;
}

interface Range {
  readonly marks?: readonly Mark[];
  /** The only queues to visit. */
  readonly queues?: readonly number[];
}

async function claim(given: Request, poolId = "pool", { marks = [], queues }: Range = {}): Promise<Claim> {
  const [result] = await database.run(claimJobs, {
    poolId,
    taskIds: given.tasks,
    wanted: given.wanted,
    perQueue: given.perQueue,
    forbidden: given.forbidden,
    accepted: given.accepted,
    clock: null,
    marks,
    withQueues: queues === undefined,
    ownQueues: queues ?? [],
    relaxed: true,
  });
  const rows = JSON.parse(result!.jobs ?? "[]") as ClaimedRow[];
  return {
    ids: rows.map(([id]) => Number(id)),
    queueById: new Map(rows.map(([id, queue]) => [Number(id), queue])),
    result: result!,
  };
}

async function whileHeld<T>(given: Table, act: () => Promise<T>): Promise<T> {
  await fillTable(db, given);
  await holdRows(holder, given);
  try {
    return await act();
  } finally {
    await holder.query("rollback");
  }
}

function isPrefix(part: readonly number[], whole: readonly number[]): void {
  expect(part).toEqual(whole.slice(0, part.length));
}

/** Where a claim is to start in a priority: behind the jobs of this time. */
interface Start {
  readonly priority: number;
  readonly runIn: number;
}

async function checkOneClaim(
  given: Table,
  asked: Request,
  starts: readonly Start[] = [],
  only?: readonly number[],
): Promise<void> {
  const { ids, queueById, result } = await whileHeld(given, async () =>
    claim(asked, "pool", { marks: await marksAt(starts), ...(only && { queues: only }) }),
  );
  const visited = only ? tableOf(given, only) : given;
  const expected = expectClaim(starts.length > 0 ? tableFrom(visited, starts) : visited, asked);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids).toHaveLength(expected.count);
  isPrefix(
    ids.filter((id) => queueById.get(id) === null),
    expected.free,
  );
  for (const queue of new Set(queueById.values())) {
    if (queue === null) continue;
    isPrefix(
      ids.filter((id) => queueById.get(id) === queue),
      expected.queued.get(queue) ?? [],
    );
  }
  if (asked.perQueue === 1) expect(ids).toEqual(expected.inOrder);
  // What could not be had because others hold it is worth another scan at once. From marks on, a full scan is owed anyway.
  if (ids.length < asked.wanted) {
    const isContended = starts.length === 0 ? expected.isContended : expected.heldQueues.length > 0;
    if (isContended) expect(result.due_in_ms).toBeLessThanOrEqual(0);
    else expect(result.due_in_ms ?? 1).toBeGreaterThan(0);
  }
  // A queue that had a due job, and of which none was taken, is worth another visit.
  if (only) {
    const visitable = new Set([...expected.queued.keys(), ...expected.heldQueues]);
    const left = [...visitable].filter((queue) => ![...queueById.values()].includes(queue));
    expect([...(result.left_queues ?? [])].sort()).toEqual(left.sort());
  } else expect(result.left_queues).toBeNull();
  const locked = await db.query<{ id: number }>(
    "select id::int from graphile_worker._private_jobs where locked_by = 'pool' order by id",
  );
  expect(locked.map(({ id }) => id)).toEqual(ids.toSorted((one, other) => one - other));
}

async function marksAt(starts: readonly Start[]): Promise<Mark[]> {
  if (starts.length === 0) return [];
  const [row] = await db.query<{ now: Date }>(
    "select coalesce(max(created_at), now()) as now from graphile_worker._private_jobs",
  );
  const at = (runIn: number): string => new Date(row!.now.getTime() + 1 + runIn * 1000).toISOString();
  return starts.map(({ priority, runIn }) => [priority, at(runIn), "0"]);
}

/** What such a claim sees: outside of queues nothing before its starts, nor of other priorities. */
function tableFrom(given: Table, starts: readonly Start[]): Table {
  const jobs = given.jobs.map((job) => {
    const start = starts.find(({ priority }) => priority === job.priority);
    return { ...job, runIn: job.queue !== null || (start && job.runIn > start.runIn) ? job.runIn : 3000 };
  });
  return { ...given, jobs };
}

/** What a claim sees that visits only some queues. */
function tableOf(given: Table, only: readonly number[]): Table {
  const jobs = given.jobs.map((job) => ({
    ...job,
    runIn: job.queue === null || only.includes(job.queue) ? job.runIn : 3000,
  }));
  return { ...given, jobs };
}

test("a claim gives what the oracle gives, past rows and queues that others hold", async () => {
  await fc.assert(
    fc.asyncProperty(table(60, inOrder), request, (given, asked) => checkOneClaim(given, asked)),
    { numRuns: times(60) },
  );
}, 240_000);

test("a claim from a table of hundreds of jobs gives what the oracle gives", async () => {
  await fc.assert(
    fc.asyncProperty(table(700, inOrder), request, (given, asked) => checkOneClaim(given, asked)),
    { numRuns: times(20) },
  );
}, 240_000);

test("a claim behind thousands of jobs that cannot run gives what the oracle gives", async () => {
  await fc.assert(
    fc.asyncProperty(table(40, offOrder), request, (given, asked) => checkOneClaim(given, asked)),
    { numRuns: times(15) },
  );
}, 240_000);

const start = fc.record({ priority: fc.integer({ min: -1, max: 1 }), runIn: fc.constantFrom(-3000, -2000, -1000) });
const starts = fc.uniqueArray(start, { minLength: 1, maxLength: 3, selector: ({ priority }) => priority });

test("a claim that starts at marks gives what lies behind them, in order, and of queues what it always gives", async () => {
  const check = (given: Table, asked: Request, from: Start[]): Promise<void> => checkOneClaim(given, asked, from);
  await fc.assert(fc.asyncProperty(table(60, inOrder), request, starts, check), { numRuns: times(45) });
  await fc.assert(fc.asyncProperty(table(40, offOrder), request, starts, check), { numRuns: times(8) });
}, 240_000);

test("a claim that visits only some queues gives of those, and of all else, what it always gives", async () => {
  const some = fc
    .subarray([1, 2, 3, 4, 5, 6])
    .chain((queues) => fc.shuffledSubarray(queues, { minLength: queues.length }));
  const check = (given: Table, asked: Request, only: number[]): Promise<void> => checkOneClaim(given, asked, [], only);
  await fc.assert(fc.asyncProperty(table(60, inOrder), request, some, check), { numRuns: times(45) });
  await fc.assert(fc.asyncProperty(table(40, offOrder), request, some, check), { numRuns: times(8) });
}, 240_000);

/** Two claims at the same time, and what is left when both are through, which nobody else holds. */
async function checkTwoClaims(given: Table, one: Request, other: Request): Promise<void> {
  const asked = { ...other, tasks: one.tasks, forbidden: one.forbidden, accepted: one.accepted };
  await whileHeld(given, async () => {
    const both = await Promise.all([claim(one, "one"), claim(asked, "two")]);
    const taken = new Set(both.flatMap(({ ids }) => ids));
    const takenQueues = new Set(both.flatMap(({ queueById }) => [...queueById.values()]));
    expect(taken.size).toBe(both[0].ids.length + both[1].ids.length);
    const all = expectClaim(given, { ...one, wanted: 10_000, perQueue: 1 });
    const left = [
      ...all.free.filter((id) => !taken.has(id)),
      ...[...all.queued].flatMap(([queue, ids]) => (takenQueues.has(queue) ? [] : ids)),
    ];
    for (const [{ ids, result }, { wanted }] of [[both[0], one] as const, [both[1], asked] as const]) {
      // One that was in the other's way has less than wanted, and knows that there is more.
      if (ids.length < wanted && left.length > 0) expect(result.due_in_ms).toBeLessThanOrEqual(0);
    }
    // And whoever scans then gets it.
    const { ids } = await claim({ ...one, wanted: 10_000, perQueue: 1 }, "three");
    expect(ids.toSorted((a, b) => a - b)).toEqual(left.toSorted((a, b) => a - b));
    const pools = await db.query<{ pools: number }>(`
      select count(distinct locked_by)::int as pools from graphile_worker._private_jobs
      where job_queue_id is not null and locked_by <> 'other'
      group by job_queue_id`);
    for (const { pools: count } of pools) expect(count).toBe(1);
  });
}

test("two claimers at once share the jobs: none is given twice, no queue to both, and nothing is left behind unknown", async () => {
  await fc.assert(fc.asyncProperty(table(80, inOrder), request, request, checkTwoClaims), { numRuns: times(45) });
  await fc.assert(fc.asyncProperty(table(400, inOrder), request, request, checkTwoClaims), { numRuns: times(8) });
  await fc.assert(fc.asyncProperty(table(60, offOrder), request, request, checkTwoClaims), { numRuns: times(8) });
}, 240_000);
