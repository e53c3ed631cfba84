import { expect, test } from "vitest";
import { type Database, poolDatabase } from "../../../src/db/database.ts";
import { OutageLog } from "../../../src/db/outage-log.ts";
import { completeJobs } from "../../../src/db/statements/settle.ts";
import type { Job } from "../../../src/job.ts";
import { EndedJob } from "../../../src/worker/settle/ended-job.ts";
import { Outage } from "../../../src/worker/settle/outage.ts";
import { QueueReleases } from "../../../src/worker/settle/queue-releases.ts";
import { Settler } from "../../../src/worker/settle/settler.ts";
import { SureWrites } from "../../../src/worker/settle/sure-writes.ts";
import { Unwritten } from "../../../src/worker/settle/unwritten.ts";
import type { WorkerPool } from "../../../src/worker.ts";
import { freshDatabase } from "../../support/database.ts";
import { rememberingLogger } from "../../support/log.ts";

test("a settle that is sent again leaves a queue to the next job of it, which has ended meanwhile", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', queue_name => 'q') from generate_series(1, 2)");
  const claim = async (id: string): Promise<void> => {
    await db.query("update graphile_worker._private_job_queues set locked_by = 'pool', locked_at = now()");
    await db.query("update graphile_worker._private_jobs set locked_by = 'pool', locked_at = now() where id = $1", [
      id,
    ]);
  };
  const queue = async (): Promise<unknown> =>
    (await db.query("select locked_by from graphile_worker._private_job_queues"))[0]?.locked_by;
  const [first, second] = (await db.jobs()).map((job) => ({ ...job, locked_by: "pool" })) as unknown as [Job, Job];
  const end = (job: Job): void => settler.settle(new EndedJob({ kind: "succeeded", job }, null, 1, job.job_queue_id));

  const plain = poolDatabase(db.pool, { schema: "graphile_worker", preparedStatements: true });
  const seen: unknown[] = [];
  const database: Database = {
    ...plain,
    run: async (statement, params, signal) => {
      const rows = await plain.run(statement, params, signal);
      if ((statement as unknown) !== completeJobs) return rows;
      seen.push(await queue());
      if (seen.length > 1) return rows;
      // The first settle is done, but nobody hears of it; its queue is claimed again, and that job ends before it is sent again.
      await claim(second.id);
      end(second);
      throw new Error("Connection terminated unexpectedly");
    },
  };
  const { logger } = rememberingLogger();
  const workerPool = { _active: true } as WorkerPool;
  const outage = new Outage(new OutageLog(logger), logger, () => undefined);
  const emit = Object.assign(() => undefined, { heard: () => false });
  const writes = new SureWrites({ workerPool, emit, logger, outage });
  const unwritten = new Unwritten();
  const releases = new QueueReleases({
    database,
    writes,
    isReturningTo: () => false,
    unwritten,
    onReleased: () => undefined,
  });
  const settler = new Settler({
    database,
    emit,
    workerPool,
    writes,
    releases,
    unwritten,
    keepRules: { of: () => undefined, redact: [], opening: () => undefined },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    lend: () => undefined,
    onFlushed: () => undefined,
    onSettled: () => undefined,
  });

  await claim(first.id);
  end(first);
  await settler.idle();
  await writes.tracked();
  // Released by the first, kept by its repetition, released by the second: no claim can come between two releases.
  expect(seen).toEqual([null, "pool", null]);
  expect(await db.jobs()).toEqual([]);
});
