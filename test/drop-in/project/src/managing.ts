import type { Job, TaskSpec, WorkerUtils } from "graphile-worker";
import { pool } from "./surroundings.js";

export async function manage(helpers: WorkerUtils): Promise<object> {
  const add = (spec: TaskSpec = {}): Promise<Job> => helpers.addJob("unknown-task", { n: 1 }, spec);
  const later = { runAt: new Date(Date.now() + 3_600_000) };
  const [done, failed, moved, removed] = [await add(), await add(), await add(later), await add({ jobKey: "gone" })];
  const completed = await helpers.completeJobs([done.id]);
  const permanent = await helpers.permanentlyFailJobs([failed.id], "given up");
  const rescheduled = await helpers.rescheduleJobs([moved.id], {
    priority: 4,
    maxAttempts: 8,
    attempts: 2,
    runAt: new Date(0),
  });
  const { rows } = await helpers.withPgClient((client) =>
    client.query("select (graphile_worker.remove_job('gone')).id::text as id"),
  );
  await helpers.forceUnlockWorkers(["nobody"]);
  const codes = await Promise.all(
    [
      "select graphile_worker.add_job('x', job_key := 'y', job_key_mode := 'nonsense')",
      "select graphile_worker.add_job(null)",
      "select graphile_worker.add_job('x', priority := 100000)",
    ].map((text) =>
      pool.query(text).then(
        () => "none",
        ({ code }: { code: string }) => code,
      ),
    ),
  );
  await helpers.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS"] });
  const { rows: left } = await pool.query("select count(*)::int as n from graphile_worker.jobs where id = $1", [
    failed.id,
  ]);
  await helpers.completeJobs([moved.id]);
  return {
    completed: completed.map(({ id }) => id === done.id),
    permanent: permanent.map(({ attempts, last_error }) => [attempts, last_error]),
    rescheduled: rescheduled.map(({ priority, max_attempts, attempts, run_at }) => [
      priority,
      max_attempts,
      attempts,
      run_at,
    ]),
    removed: rows[0]?.id === removed.id,
    codes,
    left,
  };
}
