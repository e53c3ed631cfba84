import { expect, test } from "vitest";
import { listAllErrorGroups } from "../../src/db/statements/history.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { startWorker } from "../worker/kit.ts";

const utilsOn = (db: TestDatabase): Promise<QueueUtils> =>
  makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });

test("getJob finds a job wherever it is, with every attempt", async () => {
  const db = await freshDatabase();
  const utils = await utilsOn(db);
  const waiting = await utils.addJob("other", {});
  const withdrawn = await utils.addJob("other", {});
  await utils.cancelJobs([withdrawn.id]);
  let runs = 0;
  const { runner, completed, pool } = await startWorker(
    db,
    {
      flaky: () => {
        if (++runs < 2) throw new TypeError("not yet");
        return { ok: true };
      },
      dies: () => Promise.reject(new Error("never")),
    },
    { history: "outcomes", taskOptions: { flaky: { keepResult: true, backoff: () => 0 } } },
  );
  const flaky = await runner.addJob("flaky", {}, { jobKey: "k", queueName: "q" });
  const dead = await runner.addJob("dies", {}, { maxAttempts: 1 });
  await completed(3);

  expect(await utils.getJob(waiting.id)).toMatchObject({ state: "waiting", history: [] });
  expect(await utils.getJob(withdrawn.id)).toMatchObject({
    state: "finished",
    outcome: "cancelled",
    task_identifier: "other",
  });
  expect(await utils.getJob(flaky.id)).toMatchObject({
    id: flaky.id,
    state: "finished",
    task_identifier: "flaky",
    queue_name: "q",
    key: "k",
    outcome: "succeeded",
    result: { ok: true },
    history: [
      { attempt: 1, outcome: "failed", error: "not yet", error_class: "TypeError", worker_id: pool().id },
      { attempt: 2, outcome: "succeeded", error: null },
    ],
  });
  expect(await utils.getJob(dead.id)).toMatchObject({ state: "dead", history: [{ outcome: "permanentlyFailed" }] });
  expect(await utils.getJob(999_999)).toBeNull();
});

/** Twenty settles of a hundred successes each (two tasks, some with queues and keys), and sixty failures between them. */
const fill = `
  insert into graphile_worker._hathi_history_batches
    (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms, queue_names, keys)
  select '2030-01-01', '2029-01-01'::timestamptz + n / 2 * interval '1 second', n, 'task' || n % 2, 'w', n * 100, n * 100 + 99,
    array(select generate_series(n * 100, n * 100 + 99)), array_fill(1, array[100]), array_fill(2, array[100]),
    case when n = 7 then array(select 'q' || i % 3 from generate_series(1, 100) as i) end,
    case when n = 9 then array(select 'k' || i from generate_series(1, 100) as i) end
  from generate_series(1, 20) as n;
  insert into graphile_worker._hathi_history_attempts
    (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, queue_name, key)
  select '2030-01-02', '2029-01-01'::timestamptz + n / 6 * interval '1 second', 100 + n, 5000 + n, 'task0', 1, 25,
    case when n % 2 = 0 then 'failed' else 'permanentlyFailed' end, 1, 1, 'w', now(), 'q' || n % 2, 'k' || n
  from generate_series(1, 60) as n`;

test("pages of any size show every attempt once, newest first", async () => {
  const db = await freshDatabase();
  await db.query(fill);
  const utils = await utilsOn(db);
  const all = (await utils.listHistory({}, { limit: 1000 })).entries.length;
  expect(all).toBe(1000);
  for (const limit of [7, 100, 333]) {
    const seen: string[] = [];
    const moments: number[] = [];
    for (let after: string | null = null; ; ) {
      const page = await utils.listHistory({}, { limit, after });
      expect(page.entries.length).toBeLessThanOrEqual(limit);
      seen.push(...page.entries.map(({ id }) => id));
      moments.push(...page.entries.map(({ settled_at }) => settled_at.getTime()));
      after = page.next;
      if (after === null) break;
    }
    expect(new Set(seen).size).toBe(2060);
    expect(seen).toHaveLength(2060);
    expect(moments).toEqual(moments.toSorted((a, b) => b - a));
  }
});

test.each([
  [{ task: "task1" }, 1000],
  [{ task: "task0", outcome: "succeeded" }, 1000],
  [{ outcome: ["failed", "permanentlyFailed"] }, 60],
  [{ outcome: "failed" }, 30],
  [{ queue: "q0" }, 33 + 30],
  [{ key: "k7" }, 2],
  [{ key: "k7", outcome: "succeeded" }, 1],
  [{ since: new Date("2029-01-01T00:00:10Z") }, 100 + 1],
  [{ until: new Date("2029-01-01T00:00:01Z") }, 100 + 5],
  [{ task: "none" }, 0],
] as const)("listHistory(%o) finds %i attempts", async (filter, count) => {
  const db = await freshDatabase();
  await db.query(fill);
  const { entries } = await (await utilsOn(db)).listHistory(filter, { limit: 1000 });
  expect(entries).toHaveLength(count);
});

test("what listHistory cannot read is refused with a sentence", async () => {
  const utils = await utilsOn(await freshDatabase());
  await expect(utils.listHistory({ outcome: "suceeded" as never })).rejects.toThrow("Did you mean 'succeeded'?");
  await expect(utils.listHistory({}, { after: "1" })).rejects.toThrow("must be the 'next' of the page before");
  await expect(utils.listHistory({ since: new Date("x") })).rejects.toThrow("'since' must be a valid date");
});

function readRow(): never {
  throw new TypeError("Cannot read row 17");
}
function readOther(): never {
  throw new TypeError("Cannot read row 17");
}

test("failures of one task, class and place are one group, whatever their message", async () => {
  const db = await freshDatabase();
  const { runner, completed } = await startWorker(
    db,
    {
      a: (payload: { other?: boolean }) => (payload.other ? readOther() : readRow()),
      b: () => readRow(),
      text: ({ n }: { n: number }) => Promise.reject(`row ${n} is bad`),
    },
    { history: "outcomes" },
  );
  for (const payload of [{}, {}, { other: true }]) await runner.addJob("a", payload);
  await runner.addJob("b", {});
  for (const n of [1, 22]) await runner.addJob("text", { n });
  await completed(6);
  const utils = await utilsOn(db);
  const groups = await utils.listErrors();
  const summary = ["a 1 1", "a 2 2", "b 1 1", "text 2 2"];
  expect(groups.map(({ task_identifier, count }) => `${task_identifier} ${count} ${count}`).sort()).toEqual(summary);
  // The failures themselves say the same as what was kept of their groups.
  const looked = await utils.listErrors({ since: new Date(0) });
  expect(looked.map(({ task_identifier, count, jobs }) => `${task_identifier} ${count} ${jobs}`).sort()).toEqual(
    summary,
  );
  expect(groups).toEqual(looked.map((group) => ({ ...group, jobs: null })));
  const twice = groups.find(({ task_identifier, count }) => task_identifier === "a" && count === 2)!;
  expect(twice).toMatchObject({ error_class: "TypeError", example_error: "Cannot read row 17" });
  expect(twice.first_at.getTime()).toBeLessThanOrEqual(twice.last_at.getTime());
  const { entries } = await utils.listHistory({ fingerprint: twice.fingerprint });
  expect(entries).toHaveLength(2);
  expect(entries[0]!.id).toBe(twice.example_id);
  expect(await utils.listErrors({ task: "b" })).toHaveLength(1);
});

/** Pages that a statement reads, whether from memory or disk. */
async function pagesRead(db: TestDatabase, text: string): Promise<number> {
  const [row] = await db.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, format json) ${text}`,
  );
  const { "Shared Hit Blocks": hit, "Shared Read Blocks": read } = row!["QUERY PLAN"][0].Plan;
  return hit! + read!;
}

test("a look-up reads a handful of pages, however many jobs have finished", async () => {
  const db = await freshDatabase();
  for (const day of [1, 2, 3, 4]) {
    await db.query("select graphile_worker._hathi_tend_history_on('{1}', $1)", [`2029-01-0${day}`]);
  }
  // 400,000 jobs that were settled a hundred at a time, and 20,000 one at a time, with a late one among the others.
  await db.query(`
    insert into graphile_worker._hathi_history_batches
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select '2029-01-03'::date + n % 3, '2029-01-01'::timestamptz + n * interval '1 second', n, 'task' || n % 10, 'w', n * 100, n * 100 + 99,
      array(select generate_series(n * 100, n * 100 + 99)), array_fill(1, array[100]), array_fill(2, array[100])
    from generate_series(1, 4000) as n;
    insert into graphile_worker._hathi_history_batches
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select '2029-01-03'::date + n % 3, '2029-01-02'::timestamptz + n * interval '1 second', n, 'single', 'w', n, n, array[n], '{1}', '{1}'
    from generate_series(1000000, 1020000) as n;
    insert into graphile_worker._hathi_history_attempts
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, fingerprint)
    select '2029-01-03'::date + n % 3, '2029-01-02'::timestamptz + n * interval '1 second', n, n, 'task0', 1, 25, 'failed', 1, 1, 'w', now(), 'f' || n % 9
    from generate_series(1, 20000) as n`);
  await db.query(`
    insert into graphile_worker._hathi_error_groups
    select expires_on, fingerprint, entry % 8, min(task_identifier), 'Error', count(*), min(settled_at), max(settled_at)
    from graphile_worker._hathi_history_attempts group by expires_on, fingerprint, entry % 8`);
  await db.query("analyze graphile_worker._hathi_history_batches; analyze graphile_worker._hathi_history_attempts");
  const find = (id: number): Promise<number> =>
    pagesRead(db, `select * from graphile_worker._hathi_find_history('{${id}}')`);
  const list = (filter: string): Promise<number> =>
    pagesRead(db, `select * from graphile_worker._hathi_list_history(${filter}, null, null, null, null, null, 51)`);
  await find(1);
  await list("null, null, null, null, null");
  for (const id of [250_000, 1_010_000, 77, 5_000_000]) expect(await find(id), `pages for job ${id}`).toBeLessThan(150);
  for (const filter of [
    "null, null, null, null, null",
    "'task3', null, null, null, null",
    "null, null, null, '{failed}', null",
    "null, null, null, null, 'f3'",
    "'none', null, null, null, null",
    "null, null, 'no such key', null, null",
  ])
    expect(await list(filter), `pages for ${filter}`).toBeLessThan(600);
  const text = listAllErrorGroups.text.replaceAll(/\$[12]::text/g, "null::text").replaceAll("$3", "50");
  expect(await pagesRead(db, text), "pages for the groups of failures").toBeLessThan(100);
  const groups = await (await utilsOn(db)).listErrors();
  expect(groups.map(({ count }) => count)).toEqual(Array(9).fill(expect.toSatisfy((n) => n === 2222 || n === 2223)));
});
