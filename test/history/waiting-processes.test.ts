import { expect, onTestFinished, test, vi } from "vitest";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

test("every wait ends with its job although workers are killed and backends of both sides terminated", async () => {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ connectionString: db.url, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  const options = {
    connectionString: db.url,
    concurrency: 10,
    pollInterval: 200,
    taskOptions: { work: { keepResult: true }, fail_first: { keepResult: true, backoff: { type: "fixed", delay: 1 } } },
  } as const;
  const victim = await startWorker(options);
  const waits: Promise<unknown>[] = [];
  let ended = 0;
  const addAndAwait = async (count: number): Promise<void> => {
    const jobs = await utils.addJobs(
      Array.from({ length: count }, (_, n) => ({
        identifier: n % 4 === 0 ? "fail_first" : "work",
        payload: { ms: 5 },
      })),
    );
    for (const { id } of jobs) {
      waits.push(
        utils.waitForJob(id).then((result) => {
          ended++;
          return result;
        }),
      );
    }
  };
  await addAndAwait(400);
  await until(() => ended > 50);
  const [{ worker_id: victimId }] = (await db.query<{ worker_id: string }>(
    "select worker_id from graphile_worker._hathi_history_attempts limit 1",
  )) as [{ worker_id: string }];
  victim.kill("SIGKILL");
  await victim.ended;
  const other = await startWorker(options);
  let terminated = 0;
  await until(
    async () => {
      // The victim's locks, as recovery would free them; and whatever is just asked, heard or settled.
      await db.query("select graphile_worker.force_unlock_workers(array[$1])", [victimId]);
      const [row] = await db.query<{ count: number }>(`
        select count(pg_terminate_backend(pid))::int as count from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and random() < 0.2
          and (query like '%_hathi_watch_jobs%' or query like '%hathi:ended%' or query like '%_kept(%')`);
      terminated += row!.count;
      // A quick machine may end every job before a termination hits.
      if (terminated === 0) await addAndAwait(40);
      return terminated > 0 && ended === waits.length;
    },
    { what: "all waits have ended", withinMs: 90_000 },
  );
  expect(new Set(await Promise.all(waits))).toEqual(new Set([null]));
  await other.stop();
});
