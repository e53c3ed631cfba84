import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { freshDatabase, type TestDatabase, testPool } from "../support/database.ts";

const claimOne = `
  update graphile_worker._private_jobs set attempts = attempts + 1, locked_at = now(), locked_by = 'pool-1'
  where id = (
    select id from graphile_worker._private_jobs
    where is_available and run_at <= now() order by priority, run_at limit 1 for update skip locked
  ) returning id, payload`;

/** Claims and completes until told to stop and nothing is left; gives the payloads it has seen. */
async function work(database: TestDatabase, isOver: () => boolean): Promise<unknown[]> {
  const pool = testPool(database.url, 1);
  const seen: unknown[] = [];
  for (;;) {
    const isLast = isOver();
    const [job] = (await pool.query<{ id: string; payload: unknown }>(claimOne)).rows;
    if (job) {
      seen.push(...(Array.isArray(job.payload) ? job.payload : [job.payload]));
      await pool.query("delete from graphile_worker._private_jobs where id = $1", [job.id]);
    } else if (isLast) return seen;
  }
}

test.each([
  ["add_job", "select * from graphile_worker.add_job('greet', $2::json, job_key => $1)"],
  [
    "add_jobs",
    `select * from graphile_worker.add_jobs(array[
      ('greet', $2::json, null, null, null, $1, null, null)::graphile_worker.job_spec])`,
  ],
  [
    "preserve_run_at",
    "select * from graphile_worker.add_job('greet', $2::json, job_key => $1, job_key_mode => 'preserve_run_at')",
  ],
])("%s under one key never comes back empty and loses nothing while workers claim", async (_name, text) => {
  const database = await freshDatabase();
  const adders = 4;
  const addsEach = 60;
  let isOver = false;

  const workers = Array.from({ length: 3 }, () => work(database, () => isOver));
  const added = await Promise.all(
    Array.from({ length: adders }, async (_, adder) => {
      const pool = testPool(database.url, 1);
      const rows: unknown[] = [];
      for (let n = 0; n < addsEach; n++) {
        const { rows: got } = await pool.query(text, ["k", JSON.stringify([adder * addsEach + n])]);
        rows.push(...got);
      }
      return rows;
    }),
  );
  isOver = true;
  const seen = (await Promise.all(workers)).flat();

  const rows = added.flat() as Array<{ id: string | null; key: string }>;
  expect(rows).toHaveLength(adders * addsEach);
  expect(rows.filter(({ id, key }) => id === null || key !== "k")).toEqual([]);
  // Arrays are appended, so every number that was added must have reached a worker exactly once.
  expect(seen.sort((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: adders * addsEach }, (_, n) => n));
});

test("an add that meets a claim in progress waits for it, and then makes a new job", async () => {
  const database = await freshDatabase();
  await database.query("select graphile_worker.add_job('greet', '[1]', job_key => 'k')");
  const claimer = await database.pool.connect();
  await claimer.query("begin");
  const [claimed] = (await claimer.query(claimOne)).rows;
  const adding = database.query("select * from graphile_worker.add_job('greet', '[2]', job_key => 'k')");
  await claimer.query("commit");
  claimer.release();
  const [added] = await adding;
  expect(added).toMatchObject({ key: "k", payload: [2], attempts: 0, locked_at: null });
  expect(added?.id).not.toBe(claimed.id);
});

test("adds of many keys in any order do not deadlock", async () => {
  const database = await freshDatabase();
  const pool = testPool(database.url, 6);
  const shuffle = <T>(list: T[]): T[] =>
    list
      .map((item) => [randomInt(1e9), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item);
  const results = await Promise.all(
    Array.from({ length: 60 }, async (_, round) => {
      const specs = shuffle(Array.from({ length: 10 }, (_, n) => n)).map((n) => ({
        identifier: `task-${(n + round) % 12}`,
        queue_name: `queue-${(n * 7 + round) % 12}`,
        job_key: `key-${n}`,
        payload: { round },
      }));
      const { rows } = await pool.query(
        `select * from graphile_worker.add_jobs(
          array(select json_populate_record(null::graphile_worker.job_spec, spec) from json_array_elements($1) as spec))`,
        [JSON.stringify(specs)],
      );
      return rows.map(({ key }) => key).join() === specs.map(({ job_key }) => job_key).join();
    }),
  );
  expect(results.every(Boolean)).toBe(true);
  expect(await database.jobs()).toHaveLength(10);
});

test("concurrent first adds of the same task and queue use one id each", async () => {
  const database = await freshDatabase();
  const pool = testPool(database.url, 8);
  await Promise.all(
    Array.from({ length: 40 }, () => pool.query("select graphile_worker.add_job('greet', queue_name => 'q')")),
  );
  expect(await database.jobs()).toHaveLength(40);
  expect(await database.query("select identifier from graphile_worker._private_tasks")).toHaveLength(1);
  expect(await database.query("select queue_name from graphile_worker._private_job_queues")).toHaveLength(1);
});

test("a job that was replaced while it ran does not come to life again when it is returned", async () => {
  const database = await freshDatabase();
  await database.query("select graphile_worker.add_job('greet', job_key => 'k')");
  const [claimed] = await database.query<{ id: string }>(claimOne);
  await database.query("select graphile_worker.add_job('greet', job_key => 'k')");
  expect(await database.query("select id from graphile_worker._private_job_retirements")).toEqual([
    { id: claimed?.id },
  ]);
  await database.query("update graphile_worker._private_jobs set locked_at = null, locked_by = null");
  await database.query("select graphile_worker.reschedule_jobs(array[$1::bigint], attempts => 0)", [claimed?.id]);
  expect(await database.query("select id from graphile_worker._private_job_retirements")).toEqual([]);
});
