import { expect, test, vi } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { startWorker } from "../support/worker-process.ts";

const hour = 3_600_000;
// Processes start slowly on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

// Not the time of day decides: of a clock that was right and is now wrong, and of one that was wrong and is now right.
test.each(["right", "fast"] as const)(
  "recurring jobs and sweeps go on when a %s clock is set back by an hour",
  async (clock) => {
    const db = await freshDatabase();
    const worker = await startWorker({
      connectionString: db.url,
      clock,
      crontab: "* * * * * work ?seconds=*",
      minResetLockedInterval: 50,
      maxResetLockedInterval: 100,
      tells: ["resetLocked:success", "cron:scheduled"],
    });
    // Those of a fast clock are scheduled for a time that has not come yet.
    const scheduled = (): number => worker.told().filter((event) => event === "cron:scheduled").length;
    await until(() => scheduled() >= 3, { what: "recurring jobs are scheduled" });
    worker.moveClock(-hour);
    const before = { runs: worker.runs().length, told: worker.told().length };
    await until(() => worker.runs().length >= before.runs + 5, { what: "recurring jobs run on", withinMs: 60_000 });
    const since = worker.told().slice(before.told);
    expect(since).toContain("resetLocked:success");
    expect(since).toContain("cron:scheduled");
    expect(await worker.stop()).toBe(0);
    expect(worker.logged(/./).filter((line) => line.startsWith("error"))).toEqual([]);
    const [crontab] = await db.query<{ skew: number }>(
      "select abs(extract(epoch from now() - last_execution))::float8 as skew from graphile_worker._private_known_crontabs",
    );
    expect(crontab!.skew).toBeLessThan(600);
  },
);

test("polling, scheduled jobs and the search for strays go on when a clock is set back by an hour", async () => {
  const db = await freshDatabase();
  const worker = await startWorker({ connectionString: db.url, clock: "right", concurrency: 3, pollInterval: 200 });
  await db.query("select graphile_worker.add_job('hold'), graphile_worker.add_job('work')");
  await until(() => worker.holds().length === 1 && worker.runs().length === 1, { what: "it runs jobs" });
  const [held] = await db.jobs();
  worker.moveClock(-hour);
  const insert = (values: string): Promise<{ id: string }[]> =>
    db.query(`
      insert into graphile_worker._private_jobs (task_id, run_at, locked_at, locked_by)
      select id, ${values} from graphile_worker._private_tasks where identifier = 'work' returning id`);
  const polled = await insert("now(), null, null"); // without a notification
  const scheduled = await insert("now() + interval '2 seconds', null, null");
  const stray = await insert(`now(), now(), '${held!.locked_by}'`);
  // A claim that is cut off may have locked jobs, so the worker searches for what is locked under its name.
  const client = await db.pool.connect();
  await client.query("begin; lock table graphile_worker._private_jobs");
  await until(
    async () =>
      (
        await db.query(`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%_hathi_claim_jobs%'`)
      ).length > 0,
    { what: "a claim waited and was cut off" },
  );
  await client.query("commit");
  client.release();
  const ids = [polled, scheduled, stray].flatMap((rows) => rows.map(({ id }) => id));
  await until(() => ids.every((id) => worker.runs().some((run) => run.id === id)), {
    what: "all three have run",
    withinMs: 60_000,
  });
  worker.release();
  expect(await worker.stop()).toBe(0);
});
