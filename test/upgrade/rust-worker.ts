import { randomBytes } from "node:crypto";
import { sleep } from "../../src/util/sleep.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import type { OldWorker } from "./rehearse.ts";

/** Does to the database what a worker of the Rust port does: heartbeats, and one job after the other. */
export function startRustWorker(database: TestDatabase, { beats }: { beats: boolean }): OldWorker {
  const id = `graphile_worker_${randomBytes(9).toString("hex")}`;
  const pool = testPool(database.url, 2);
  const stop = new AbortController();
  const runs: string[] = [];
  const failures: string[] = [];

  const loop = async (restMs: number, step: () => Promise<boolean>): Promise<void> => {
    while (!stop.signal.aborted) {
      const hasMore = await step().catch((error: unknown) => {
        failures.push(String(error));
        return false;
      });
      if (!hasMore) await sleep(restMs, stop.signal);
    }
  };
  const loops = [
    loop(20, async () => {
      const { rows } = await pool.query(claim, [id]);
      if (!rows[0]) return false;
      runs.push(rows[0].id);
      await pool.query(complete, [rows[0].id, rows[0].job_queue_id, id]);
      return true;
    }),
  ];
  if (beats) {
    loops.push(
      loop(50, async () => {
        await pool.query("select graphile_worker.worker_heartbeat($1, $2)", [id, '{"pid":1}']);
        return false;
      }),
    );
  }
  return {
    runs: () => runs,
    failures: () => failures,
    async stop() {
      stop.abort();
      await Promise.all(loops);
      if (beats) await pool.query("select graphile_worker.worker_deregister($1)", [id]);
    },
  };
}

const claim = `
  with next as (
    select id, job_queue_id from graphile_worker._private_jobs
    where is_available = true and run_at <= now()
      and task_id in (select id from graphile_worker._private_tasks where identifier = 'work')
      and (job_queue_id is null or job_queue_id in (
        select id from graphile_worker._private_job_queues where is_available = true for update skip locked))
    order by priority, run_at limit 1 for update skip locked
  ), queue as (
    update graphile_worker._private_job_queues as queue set locked_by = $1, locked_at = now()
    from next where queue.id = next.job_queue_id
  )
  update graphile_worker._private_jobs as job
  set attempts = job.attempts + 1, locked_by = $1, locked_at = now()
  from next where job.id = next.id
  returning job.*`;

const complete = `
  with done as (delete from graphile_worker._private_jobs where id = $1)
  update graphile_worker._private_job_queues set locked_by = null, locked_at = null where id = $2 and locked_by = $3`;
