import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Statement } from "../../src/db/statement.ts";
import { listJobs } from "../../src/db/statements/list-jobs.ts";
import { listQueues } from "../../src/db/statements/queues.ts";
import { countSampledJobs, oldestWaitingJob } from "../../src/db/statements/stats.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { runProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";

// Each test starts several processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

/** A million jobs: half due, half later; some dead, some running, a fifth of them in a thousand queues. */
const seed = `
  insert into graphile_worker._private_tasks (identifier) select 'task_' || i from generate_series(1, 20) as i;
  insert into graphile_worker._private_job_queues (queue_name) select 'queue_' || i from generate_series(1, 1000) as i;
  insert into graphile_worker._private_jobs
    (task_id, job_queue_id, payload, priority, run_at, attempts, locked_at, locked_by, key, last_error)
  select 1 + i % 20, case when i % 5 = 0 then 1 + i % 1000 end, json_build_object('n', i), i % 3,
    now() + (i % 2 * 2 - 1) * interval '1 hour', case when i % 50 = 7 then 25 else 0 end,
    case when i % 40000 = 3 then now() end, case when i % 40000 = 3 then 'pool-1' end,
    case when i % 100000 = 1 then 'key_' || i end, case when i % 50 = 7 then 'boom' end
  from generate_series(1, 1000000) as i;
  analyze graphile_worker._private_jobs`;

let db: TestDatabase;
beforeAll(async () => {
  db = await freshDatabase({ cleanUp: () => undefined });
  await db.query(seed);
}, 180_000);
afterAll(() => db.drop());

async function ask<T>(...args: string[]): Promise<T> {
  const { folder: cwd } = await makeProject();
  const end = await runProgram([...args, "--json"], { cwd, env: { DATABASE_URL: db.url } });
  expect(end.code, end.stderr).toBe(0);
  return JSON.parse(end.stdout) as T;
}

/** Pages of 8 kB that a statement looks at: a measure of its work that does not depend on the machine. */
async function pagesRead<Params>(statement: Statement<Params, unknown>, params: Params): Promise<number> {
  const text = `explain (analyze, buffers, format json) ${statement.text}`;
  const [row] = await db.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(text, statement.values(params));
  const { Plan } = row!["QUERY PLAN"][0];
  return Plan["Shared Hit Blocks"]! + Plan["Shared Read Blocks"]!;
}

interface Page {
  readonly jobs: readonly { readonly id: string; readonly state: string }[];
  readonly next: string | null;
}

test("list pages through a million jobs without counting or sorting them", async () => {
  const first = await ask<Page>("list");
  expect(first.jobs).toHaveLength(50);
  expect(first.next).toBe("999951");
  const deep = await ask<Page>("list", "--before", "500000", "--limit", "5");
  expect(deep.jobs.map(({ id }) => id)).toEqual(["499999", "499998", "499997", "499996", "499995"]);
  const running = await ask<Page>("list", "--state", "running");
  expect(running.jobs).toHaveLength(25);
  const keyed = await ask<Page>("list", "--key", "key_500001");
  expect(keyed.jobs.map(({ id }) => id)).toEqual(["500001"]);
  const searched = await ask<Page>("list", "--search", '"n" : 777777', "--limit", "1");
  expect(searched.jobs.map(({ id }) => id)).toEqual(["777777"]);
});

test("a page reads its own rows, the sample its share, the queues their index, and not the table", async () => {
  const [{ pages }] = (await db.query<{ pages: number }>(
    "select pg_relation_size('graphile_worker._private_jobs') / 8192 as pages",
  )) as [{ pages: number }];
  const free = {
    task: null,
    queue: null,
    key: null,
    since: null,
    before: null,
    search: null,
    error: null,
    redact: null,
  };
  const anything = { ...free, from: null, upTo: "499999", limit: 51 };
  expect(await pagesRead(listJobs.all, anything)).toBeLessThan(1_000);
  expect(await pagesRead(listJobs.dead, anything)).toBeLessThan(1_000);
  expect(await pagesRead(listJobs.all, { ...anything, key: "key_500001", upTo: null })).toBeLessThan(1_000);
  expect(await pagesRead(oldestWaitingJob, {})).toBeLessThan(100);
  expect(await pagesRead(countSampledJobs, { percent: 10 })).toBeLessThan(pages * 0.2);
  await db.query("vacuum graphile_worker._private_jobs");
  expect(await pagesRead(listQueues, { limit: 50, search: null, lookAt: null })).toBeLessThan(pages * 0.2);
});

test("stats estimates from a sample, counts running jobs exactly, and --exact counts all", async () => {
  interface Stats {
    readonly isExact: boolean;
    readonly counts: Record<"waiting" | "scheduled" | "running" | "dead" | "total", number>;
    readonly tasks: readonly { readonly task: string; readonly total: number }[];
    readonly oldestReady: { readonly task_identifier: string };
  }
  const estimate = await ask<Stats>("stats");
  expect(estimate.isExact).toBe(false);
  expect(estimate.counts.running).toBe(25);
  expect(estimate.tasks).toHaveLength(20);
  const near = (count: number, wanted: number): boolean => Math.abs(count - wanted) < wanted * 0.15;
  expect(near(estimate.counts.total, 1_000_000), `${estimate.counts.total}`).toBe(true);
  expect(near(estimate.counts.dead, 20_000), `${estimate.counts.dead}`).toBe(true);
  expect(estimate.oldestReady).not.toBeNull();
  const exact = await ask<Stats>("stats", "--exact");
  expect(exact).toMatchObject({ isExact: true, counts: { running: 25, dead: 20_000, total: 1_000_000 } });
});

test("queues counts in the index of queued jobs alone", async () => {
  const answer = await ask<{ queue_name: string; waiting: number; scheduled: number }[]>("queues", "--limit", "3");
  expect(answer).toHaveLength(3);
  expect(answer[0]!.waiting + answer[0]!.scheduled).toBe(1_000);
});

test("why counts the jobs ahead only as far as it matters", async () => {
  const answer = await ask<{ reasons: { kind: string; ahead?: number; atLeast?: boolean }[] }>("why", "999998");
  expect(answer.reasons).toContainEqual(expect.objectContaining({ kind: "jobs-ahead", ahead: 10_000, atLeast: true }));
});
