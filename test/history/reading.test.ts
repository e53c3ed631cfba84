import { expect, test } from "vitest";
import { listAllErrorGroups, listErrorGroups } from "../../src/db/statements/error-groups.ts";
import { makeWorkerUtils, type QueueUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
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

interface Cost {
  /** Pages that a statement reads, whether from memory or disk. */
  readonly pages: number;
  /** Records that it writes to the log. */
  readonly records: number;
}

async function costOf(db: TestDatabase, text: string): Promise<Cost> {
  const [row] = await db.query<{ "QUERY PLAN": [{ Plan: Record<string, number> }] }>(
    `explain (analyze, buffers, wal, format json) ${text}`,
  );
  const plan = row!["QUERY PLAN"][0].Plan;
  return { pages: plan["Shared Hit Blocks"]! + plan["Shared Read Blocks"]!, records: plan["WAL Records"]! };
}

const days = ["2029-01-03", "2029-01-04", "2029-01-05"] as const;

/**
 * Ten million jobs that were settled a hundred at a time, 20,000 that were settled one at a time, and 300,000 failures, in the partitions of three
 * days. These are filled before they are attached, so that their indexes are built at once.
 */
const fillPartition = (number: number): string => {
  const day = days[number]!;
  const [batches, attempts] = ["batches", "attempts"].map((kind) => `graphile_worker._hathi_history_${kind}`);
  const ending = day.replaceAll("-", "");
  const attach = (table: string): string => `
    alter table ${table} attach partition ${table}_${ending} for values from ('${day}') to ('${day}'::date + 1);
    analyze ${table}_${ending};`;
  return `
    create table ${batches}_${ending} (like ${batches}) with (autovacuum_enabled = off);
    insert into ${batches}_${ending}
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select '${day}', '2029-01-01'::timestamptz + n * interval '0.1 second', n, 'task' || n % 10, 'w', first, first + 99,
      array(select generate_series(first, first + 99)), '{${Array(100).fill(1).join()}}', '{${Array(100).fill(2).join()}}'
    from (select n, n / 40 * 4096 + n % 40 * 100 as first from generate_series(1, 100000) as n) as settle
    where n % 3 = ${number};
    insert into ${batches}_${ending}
      (expires_on, settled_at, entry, task_identifier, worker_id, first_id, last_id, job_ids, wait_ms, run_ms)
    select '${day}', '2029-01-02'::timestamptz + n * interval '1 second', n, 'single', 'w', n, n, array[n], '{1}', '{1}'
    from generate_series(20000000, 20020000) as n where n % 3 = ${number};
    ${attach(batches!)}
    create table ${attempts}_${ending} (like ${attempts}) with (autovacuum_enabled = off);
    insert into ${attempts}_${ending}
      (expires_on, settled_at, entry, job_id, task_identifier, attempt, max_attempts, outcome, wait_ms, run_ms, worker_id, created_at, fingerprint)
    select '${day}', '2029-01-02'::timestamptz + n * interval '0.1 second', n, n, 'task0', 1, 25, 'failed', 1, 1, 'w', now(), 'f' || n % 9
    from generate_series(1, 300000) as n where n % 3 = ${number};
    ${attach(attempts!)}`;
};

test("a look-up reads a handful of pages of ten million finished jobs, and their expiry drops a table", async () => {
  const db = await freshDatabase();
  await Promise.all(days.map((_, number) => db.query(fillPartition(number))));
  await db.query(`
    insert into graphile_worker._hathi_error_groups
    select expires_on, fingerprint, entry % 8, min(task_identifier), 'Error', count(*), min(settled_at), max(settled_at)
    from graphile_worker._hathi_history_attempts group by expires_on, fingerprint, entry % 8`);
  const count = "select sum(cardinality(job_ids))::int as jobs from graphile_worker._hathi_history_batches";
  expect(await db.query(count)).toEqual([{ jobs: 10_020_001 }]);
  const find = async (id: number): Promise<number> => {
    const cost = await costOf(db, `select * from graphile_worker._hathi_find_history('{${id}}')`);
    return cost.pages;
  };
  const list = async (filter: string): Promise<number> => {
    const cost = await costOf(
      db,
      `select * from graphile_worker._hathi_list_history(${filter}, null, null, null, null, null, 51)`,
    );
    return cost.pages;
  };
  await find(1);
  await list("null, null, null, null, null");
  const utils = await utilsOn(db);
  for (const id of [6_144_050, 20_010_000, 4_177, 50_000_000]) {
    expect(await find(id), `pages for job ${id}`).toBeLessThan(150);
  }
  for (const id of ["6144050", "20010000"]) expect(await utils.getJob(id)).toMatchObject({ outcome: "succeeded" });
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
  expect((await costOf(db, text)).pages, "pages for the groups of failures").toBeLessThan(100);
  // Since a moment that is in the middle of every group: 250,000 failures are later.
  const since = new Date("2029-01-02T01:23:20Z");
  for (const day of days) await db.query(`vacuum graphile_worker._hathi_history_attempts_${day.replaceAll("-", "")}`);
  const params = ["null", "null", `'${since.toISOString()}'`, "50", "1000", "24"];
  const sinceText = listErrorGroups.text.replaceAll(/\$(\d)/g, (_, number) => params[Number(number) - 1]!);
  expect((await costOf(db, sinceText)).pages, "pages for the groups since a moment").toBeLessThan(600);
  expect(await utils.listErrors({ since })).toEqual(
    Array(9).fill(expect.objectContaining({ count: 1_000, has_more: true, jobs: 1_000 })),
  );
  const groups = await utils.listErrors();
  expect(groups.map(({ count }) => count)).toEqual(
    Array(9).fill(expect.toSatisfy((n) => n === 33_333 || n === 33_334)),
  );

  // A third of each table: more than 30,000 rows that are neither read nor deleted one by one.
  const expired = "select from graphile_worker._hathi_history_attempts where expires_on <= $1 limit 1";
  await until(
    async () => {
      const expire = await costOf(db, `select graphile_worker._hathi_tend_history_on('{}', '${days[0]}')`);
      expect(expire.records, "records for the expiry of a partition").toBeLessThan(3_000);
      expect(expire.pages, "pages for the expiry of a partition").toBeLessThan(5_000);
      return (await db.query(expired, [days[0]])).length === 0;
    },
    { what: "the first day has expired", withinMs: 30_000 },
  );
  expect(await db.query(count)).toEqual([{ jobs: expect.toSatisfy((jobs) => jobs > 6_600_000 && jobs < 6_700_000) }]);
}, 60_000);
