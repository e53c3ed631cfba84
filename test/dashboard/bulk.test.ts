import { expect, test } from "vitest";
import type { AuditPage, BulkPreview, BulkRun, JobQuery } from "../../src/dashboard/contract.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { type Desk, openDesk } from "./kit.ts";

async function fill(db: TestDatabase, jobs: number): Promise<void> {
  await db.query("insert into graphile_worker._private_tasks (identifier) values ('mail'), ('other')");
  await db.query(`
    insert into graphile_worker._private_jobs (task_id, payload, attempts, last_error, run_at)
    select 1 + (n % 4 = 0)::int, '{}', case when n % 2 = 0 then 25 else 0 end, case when n % 2 = 0 then 'boom' end, '2035-01-01'
    from generate_series(1, ${jobs}) as n`);
}

const deadMails: JobQuery = { state: "dead", task: "mail" };

/** As the page does it: until the number is exact. */
async function preview({ post }: Desk, filter: JobQuery): Promise<BulkPreview> {
  let last: BulkPreview | undefined;
  do {
    const asked = { action: "retry", filter, ...(last && { upTo: last.upTo, cursor: last.cursor, count: last.count }) };
    const { status, body } = await post<BulkPreview>("bulk/preview", asked);
    expect(status, JSON.stringify(body)).toBe(200);
    last = body;
  } while (!last.isComplete);
  return last;
}

const isOver = ({ get }: Desk, id: string): Promise<BulkRun> =>
  until(async () => {
    const { body } = await get<BulkRun>(`bulk?id=${id}`);
    return body.state !== "running" && body;
  });

test("the preview's number is exact, the action changes so many jobs and no others, and the audit tells", async () => {
  const db = await freshDatabase();
  await fill(db, 50_000);
  const desk = openDesk(db, { auth: () => ({ name: "ann", can: "everything" }) });
  const seen = await preview(desk, deadMails);
  expect(seen).toMatchObject({ count: 12_500, isComplete: true, upTo: "50000", target: "dead jobs of task 'mail'" });
  // Whatever comes after the preview is left alone.
  await db.query(
    "insert into graphile_worker._private_jobs (task_id, payload, attempts, last_error) values (1, '{}', 25, 'later')",
  );

  const { status, body: begun } = await desk.post<BulkRun>("bulk", {
    action: "retry",
    filter: deadMails,
    upTo: seen.upTo,
  });
  expect(status).toBe(202);
  expect(begun).toMatchObject({ state: "running", action: "retry", by: "ann", target: seen.target, changed: 0 });
  const ended = await isOver(desk, begun.id);
  expect(ended).toMatchObject({ state: "done", matched: 12_500, changed: 12_500, message: "Retried 12,500 jobs." });
  const left = await db.query("select id from graphile_worker._private_jobs where task_id = 1 and attempts = 25");
  expect(left).toHaveLength(1);
  const others = await db.query("select from graphile_worker._private_jobs where task_id = 2 and attempts = 25");
  expect(others).toHaveLength(12_500);
  expect((await desk.get<AuditPage>("audit")).body.entries).toMatchObject([
    {
      id: begun.id,
      by: "ann",
      action: "retry",
      state: "done",
      changed: 12_500,
      target: "dead jobs of task 'mail'",
      link: "jobs?state=dead&task=mail",
    },
  ]);
});

test("another process sees how far it is and stops it; what was done stays done", async () => {
  const db = await freshDatabase();
  await fill(db, 200_000);
  const here = openDesk(db, { auth: () => ({ name: "ann", can: "everything" }) });
  const there = openDesk(db, { auth: () => ({ name: "bob", can: ["fail"] }) });
  const filter = { task: "mail" };
  const { upTo } = await preview(here, filter);
  const { body } = await here.post<BulkRun>("bulk", { action: "fail", filter, upTo, reason: "given up" });
  await until(async () => (await there.get<BulkRun>(`bulk?id=${body.id}`)).body.changed > 0);
  const asked = await there.post<BulkRun>("bulk/stop", { id: body.id });
  expect(asked).toMatchObject({ status: 200, body: { isStopping: true } });
  const ended = await isOver(there, body.id);
  expect(ended).toMatchObject({
    state: "stopped",
    message: expect.stringMatching(/^Stopped by bob after [\d,]+ jobs\.$/),
  });
  expect(ended.changed).toBeLessThan(150_000);
  const failed = await db.query("select from graphile_worker._private_jobs where last_error = 'given up'");
  expect(failed).toHaveLength(ended.changed);
});

test("a dashboard that is closed stops what it does, and writes that down", async () => {
  const db = await freshDatabase();
  await fill(db, 100_000);
  const desk = openDesk(db);
  const { body } = await desk.post<BulkRun>("bulk", { action: "remove", filter: { task: "mail" }, upTo: "100000" });
  await until(async () => (await desk.get<BulkRun>(`bulk?id=${body.id}`)).body.changed > 0);
  await desk.dashboard.close();
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  expect(await utils.getAction(body.id)).toMatchObject({
    state: "stopped",
    message: expect.stringContaining("the end of its process"),
  });
});

test("what is not clear is refused before anything is done", async () => {
  const db = await freshDatabase();
  const desk = openDesk(db);
  const refused = async (path: string, body: object): Promise<unknown> =>
    (await desk.post<{ error: { message: string } }>(path, body)).body.error.message;
  expect(await refused("bulk/preview", { action: "retry", filter: {} })).toMatch("would mean all of them");
  expect(await refused("bulk", { action: "retry", filter: { task: "" }, upTo: "1" })).toMatch("would mean all of them");
  expect(await refused("bulk", { action: "retry", filter: { task: "t" } })).toMatch("'upTo' must be an id");
  expect(await refused("bulk", { action: "pause", filter: { task: "t" }, upTo: "1" })).toMatch(
    "'action' must be one of retry, runNow",
  );
  expect(await refused("bulk", { action: "reschedule", filter: { task: "t" }, upTo: "1" })).toMatch(
    "Say what to change",
  );
  expect(await refused("bulk", { action: "retry", filter: { tsak: "t" }, upTo: "1" })).toMatch("Unknown field 'tsak'");
  expect((await desk.get("bulk?id=1")).status).toBe(404);
  expect(await db.query("select from graphile_worker._hathi_audit")).toEqual([]);
});
