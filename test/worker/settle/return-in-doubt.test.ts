import { expect, test } from "vitest";
import { type Database, poolDatabase } from "../../../src/db/database.ts";
import { OutageLog } from "../../../src/db/outage-log.ts";
import { returnJobs } from "../../../src/db/statements/settle.ts";
import type { Job } from "../../../src/job.ts";
import { Outage } from "../../../src/worker/settle/outage.ts";
import { QueueReleases } from "../../../src/worker/settle/queue-releases.ts";
import { Returns } from "../../../src/worker/settle/returns.ts";
import { Strays } from "../../../src/worker/settle/strays.ts";
import { SureWrites } from "../../../src/worker/settle/sure-writes.ts";
import type { WorkerPool } from "../../../src/worker.ts";
import { freshDatabase } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";
import { until } from "../../support/wait.ts";

/** The database, behind a line that breaks before a return gets there. */
function breakReturns(database: Database): Database {
  return {
    ...database,
    run: (statement, params, signal) =>
      (statement as unknown) === returnJobs
        ? Promise.reject(new Error("Connection terminated unexpectedly"))
        : database.run(statement, params, signal),
  };
}

test("a queue stays locked while nobody knows whether its jobs were returned, and is released with them", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q') from generate_series(1, 3)");
  await db.query("update graphile_worker._private_job_queues set locked_by = 'pool', locked_at = now()");
  await db.query(
    "update graphile_worker._private_jobs set locked_by = 'pool', locked_at = now(), attempts = 1 where id < 3",
  );
  const jobs = (await db.jobs()).filter(({ locked_by }) => locked_by === "pool") as unknown as Job[];
  const queueId = jobs[0]!.job_queue_id!;
  const { logger } = rememberingLogger();
  const workerPool = { _active: true } as WorkerPool;
  const database = breakReturns(poolDatabase(db.pool, { schema: "graphile_worker", preparedStatements: true }));
  const outage = new Outage(new OutageLog(logger), logger, (error) => strays.suspect(error));
  const emit = Object.assign(() => undefined, { heard: () => false });
  const writes = new SureWrites({ workerPool, emit, logger, outage });
  const released: number[] = [];
  const returns: Returns = new Returns({
    database,
    workerPool,
    writes,
    unwritten: { endedIn: () => [] },
    onReturned: () => undefined,
    onThrough: () => releases.releaseDeferred(),
  });
  const releases = new QueueReleases({
    database,
    writes,
    isReturningTo: (id) => returns.isReturningTo(id),
    unwritten: { endedIn: () => [] },
    onReleased: (id) => released.push(id),
  });
  const strays: Strays = new Strays({
    database,
    poolId: () => "pool",
    held: () => [...returns.jobs],
    onSearch: () => returns.searching(),
  });
  const lockedBy = async (): Promise<(string | null)[]> => {
    const rows = await db.query<{ locked_by: string | null }>(
      "select locked_by from graphile_worker._private_job_queues union all (select locked_by from graphile_worker._private_jobs order by id)",
    );
    return rows.map(({ locked_by }) => locked_by);
  };

  returns.returnUnstarted({ jobs, queueIds: [] }, null);
  await until(() => returns.jobs.size === 0);
  // The job before them has ended.
  releases.release(queueId, "pool");
  await writes.tracked();
  expect(await lockedBy()).toEqual(["pool", "pool", "pool", null]);
  expect([releases.isReleasing, released]).toEqual([true, []]);

  await strays.search();
  await until(() => released.length > 0);
  expect(await lockedBy()).toEqual([null, null, null, null]);
  expect([releases.isReleasing, released]).toEqual([false, [queueId]]);
});
