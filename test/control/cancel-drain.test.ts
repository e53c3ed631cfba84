import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../worker/kit.ts";
import { utilsOf } from "./kit.ts";

test("10,000 jobs are cancelled in one call while workers drain them: each has run or is cancelled, and none is both or neither", async () => {
  const db = await freshDatabase();
  const utils = await utilsOf(db);
  const ids: string[] = [];
  for (let part = 0; part < 10; part++) {
    const jobs = await utils.addJobs(
      Array.from({ length: 1_000 }, (_, n) => ({
        identifier: "job",
        payload: {},
        ...(n % 5 === 0 && { queueName: `q${n % 7}` }),
      })),
    );
    ids.push(...jobs.map(({ id }) => id));
  }
  const ran: string[] = [];
  // Long enough for the cancels to come in time.
  const task = async (_payload: unknown, { job }: { job: { id: string } }): Promise<void> => {
    ran.push(job.id);
    await new Promise((resolve) => void setTimeout(resolve, 2));
  };
  const workers = await Promise.all(
    [1, 2].map(() => startWorker(db, { job: task }, { history: "outcomes", concurrency: 10, pollInterval: 100 })),
  );
  await until(() => ran.length > 100, { what: "the drain has begun" });
  const results = await Promise.all([
    utils.cancelJobs(ids, { reason: "all of it" }),
    utils.cancelJobs(ids.toReversed()),
  ]);
  await until(async () => (await db.jobs()).length === 0, { what: "nothing is left" });
  for (const { runner } of workers) await runner.stop();

  expect(new Set(ran).size, "no job ran twice").toBe(ran.length);
  const gone = results.flatMap(({ cancelled }) => cancelled.map(({ id }) => id));
  const waited = new Set(gone);
  expect(waited.size, "no job was deleted twice").toBe(gone.length);
  expect(
    ran.filter((id) => waited.has(id)),
    "a job that waited never ran",
  ).toEqual([]);
  const stopping = new Set(results.flatMap((result) => result.stopping.map(({ id }) => id)));
  const known = new Set([...ran, ...gone]);
  expect(
    ids.filter((id) => !known.has(id) && !stopping.has(id)),
    "no job is forgotten",
  ).toEqual([]);
  expect(gone.length, "the cancels came in time for some").toBeGreaterThan(0);
  expect(await db.query("select from graphile_worker._private_job_queues where locked_at is not null")).toEqual([]);
  expect(
    await db.query(
      `select id from (
         select unnest(job_ids) as id from graphile_worker._hathi_history_batches
         union all select job_id from graphile_worker._hathi_history_attempts
       ) as entries group by id having count(*) > 1`,
    ),
  ).toEqual([]);
});
