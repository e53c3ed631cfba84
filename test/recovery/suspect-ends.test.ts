import { expect, test } from "vitest";
import { poolDatabase } from "../../src/db/database.ts";
import { adoptSuspect } from "../../src/db/statements/sweep.ts";
import { CancelJobError, SnoozeError } from "../../src/job-errors.ts";
import { freshDatabase } from "../support/database.ts";
import { startWorker } from "../worker/kit.ts";
import { addJob, quickly } from "./kit.ts";

test("a suspect that is snoozed or cancelled makes room for the next one at once", async () => {
  const db = await freshDatabase();
  const ids = [await addJob(db, "snooze"), await addJob(db, "cancel"), await addJob(db, "last")];
  // After so many deaths a suspect would be watched for a minute.
  await db.query(
    `insert into graphile_worker._hathi_job_crashes (job_id, attempt, crashes, deaths, since, release_at)
     select id, 1, 10 - row_number() over (order by id), 10, now(), now() from graphile_worker._private_jobs`,
  );
  await db.query("update graphile_worker._private_jobs set locked_by = 'hathi-recovery', locked_at = now()");
  const ran: string[] = [];
  const worker = await startWorker(
    db,
    {
      snooze: (_payload, { job }) => {
        ran.push(job.id);
        throw new SnoozeError("1h");
      },
      cancel: (_payload, { job }) => {
        ran.push(job.id);
        throw new CancelJobError("no need");
      },
      last: (_payload, { job }) => void ran.push(job.id),
    },
    { recovery: quickly },
  );
  await worker.completed(3);
  expect(ran).toEqual(ids);
});

/** Text that does not compress, as SQL. */
const noise = "(select string_agg(md5(n::text), '') from generate_series(1, 10000) as n)";

test("large values are left out when a suspect is adopted, and its payload arrives whole", async () => {
  const db = await freshDatabase();
  const park = async (): Promise<void> => {
    await addJob(db, "t");
    await db.query(
      `with parked as (
        update graphile_worker._private_jobs
        set payload = to_json(${noise}), last_error = ${noise}, locked_by = 'hathi-recovery', locked_at = now() returning id
      )
      insert into graphile_worker._hathi_job_crashes (job_id, attempt, crashes, deaths, since, release_at)
      select id, 1, 0, 1, now(), now() from parked on conflict do nothing`,
    );
  };
  await park();
  await db.query("select graphile_worker.worker_heartbeat('pool')");
  const database = poolDatabase(db.pool, { schema: db.schema, preparedStatements: true });
  const rows = await database.run(adoptSuspect, {
    poolId: "pool",
    taskIds: [1],
    forbidden: null,
    accepted: null,
    clock: null,
    workerNames: [],
  });
  expect(rows).toMatchObject([
    { payload: null, is_large: true, last_error: expect.stringMatching(/^[0-9a-f]{8000}$/) },
  ]);
  await db.query("delete from graphile_worker._private_jobs");
  await park();
  const worker = await startWorker(
    db,
    { t: (payload: unknown) => expect(payload).toMatch(/^[0-9a-f]{320000}$/) },
    { recovery: { ...quickly, sweepThreshold: 60_000 } },
  );
  await worker.completed(1);
  expect(worker.of("job:error")).toEqual([]);
});
