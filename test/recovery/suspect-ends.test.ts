import { expect, test } from "vitest";
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
