import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Overview } from "../../src/dashboard/contract.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { openDesk } from "./kit.ts";

test("the overview warns of what doctor finds: vacuum held back, tasks without a worker, overruns, and originals beside limits", async () => {
  const db = await freshDatabase();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  onTestFinished(() => utils.release());
  await db.query("select graphile_worker.worker_heartbeat('pool-1', $1)", [
    JSON.stringify({ pid: 1, tasks: ["slow"], concurrency: 2 }),
  ]);
  await utils.addJob("nobody-has-it", {});
  await db.query(
    `insert into graphile_worker._hathi_job_overruns (job_id, worker_id, attempt, task_identifier, timeout_ms, started_at)
     select id, 'pool-1', 1, 'slow', 1000, now() from graphile_worker.add_job('slow')`,
  );
  await db.query("update graphile_worker._private_jobs set locked_by = 'pool-1', locked_at = now() where task_id = 2");
  // A job that an original worker runs, of a task with a limit.
  await db.query(`
    select from graphile_worker._hathi_declare_limits(array['limited'], '[{"scope": "task", "name": "limited", "kind": "concurrency", "path": [], "places": 2,
      "period_ms": null, "burst": 0, "weight": 1, "weight_path": null, "cost": 1, "cost_path": null, "tasks": ["limited"]}]', 'test')`);
  const { id } = await utils.addJob("limited", {});
  await db.query(
    "update graphile_worker._private_jobs set locked_by = 'worker-0123', locked_at = now() where id = $1",
    [id],
  );
  // A session that holds vacuum back, as it would look after an hour.
  const holder = new pg.Client({ connectionString: db.url, application_name: "forgetful" });
  holder.on("error", () => undefined);
  await holder.connect();
  onTestFinished(() => holder.end());
  await holder.query("begin isolation level repeatable read; select 1");
  await db.query(`
    alter function graphile_worker._hathi_vacuum_holders() rename to _holders_now;
    create function graphile_worker._hathi_vacuum_holders()
    returns table (kind text, name text, seconds double precision, transactions integer, what text, remedy text) language sql as
    'select kind, name, seconds + 3600, transactions, what, remedy from graphile_worker._holders_now()'`);

  const desk = openDesk(db);
  const kinds = ["no-worker-for-task", "overruns", "oldest transaction", "limits"];
  const { warnings } = await until(
    async () => {
      const { body } = await desk.get<Overview>("overview?span=15m");
      return kinds.every((kind) => body.warnings.some((warning) => warning.kind === kind)) && body;
    },
    { what: "the overview warns of everything" },
  );
  const messageOf = (kind: string): string => warnings.find((warning) => warning.kind === kind)!.message;
  expect(messageOf("no-worker-for-task")).toBe("No live worker has the task nobody-has-it: 1 ready.");
  expect(messageOf("overruns")).toBe("1 job runs on after the timeout.");
  expect(messageOf("oldest transaction")).toMatch(/forgetful.*To end it: select pg_terminate_backend/);
  expect(messageOf("limits")).toContain("Workers of Graphile Worker run beside these limits (1 jobs");
});
