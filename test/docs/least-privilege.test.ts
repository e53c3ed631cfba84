import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { routes } from "../../src/dashboard/server/routes.ts";
import { makeWorkerUtils, type QueueUtils, run } from "../../src/index.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { openDesk } from "../dashboard/kit.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { blocksOf, readPage } from "./pages.ts";

/* docs/least-privilege.md to the letter. Roles are the whole server's, so their names get an ending that only this run knows. */

vi.setConfig({ testTimeout: 60_000 });

const page = readPage("docs/least-privilege.md");
const roles = [...page.matchAll(/^create role (\w+)/gm)].map((match) => match[1]!);
const ending = randomBytes(5).toString("hex");
const scripts = blocksOf(page).map(({ text }) => named(text));

function named(text: string): string {
  return text.replaceAll(new RegExp(`\\b(${roles.join("|")})\\b`, "g"), `$1_${ending}`);
}

let database: TestDatabase;

function urlOf(role: string): string {
  const url = new URL(database.url);
  url.username = named(role);
  url.password = "change me";
  return url.href;
}

async function as<T>(role: string, callback: (utils: QueueUtils) => Promise<T>): Promise<T> {
  const utils = await makeWorkerUtils({ connectionString: urlOf(role), logger: rememberingLogger().logger });
  try {
    return await callback(utils);
  } finally {
    await utils.release();
  }
}

const query = (role: string, text: string): Promise<unknown[]> =>
  as(role, (utils) => utils.withPgClient(async (client) => (await client.query(named(text))).rows));

const permissions = async (role: string): Promise<string | undefined> =>
  (await as(role, (utils) => utils.examineHealth())).find(({ name }) => name === "permissions")?.status;

const denied = { code: "42501" };

beforeAll(async () => {
  database = await freshDatabase({ migrated: false, cleanUp: () => undefined });
  const [migrator, ...others] = scripts;
  await database.pool.query(migrator!);
  await as("hathi_owner", (utils) => utils.migrate());
  for (const text of others) await database.pool.query(text);
});
afterAll(async () => {
  for (const role of roles) await database.pool.query(`drop owned by ${named(role)} cascade`);
  for (const role of roles) await database.pool.query(`drop role ${named(role)}`);
  await database.drop();
});

test("the page names every role that it makes in its table, and its scripts can be run again", async () => {
  expect(roles).toEqual(["hathi_owner", "hathi_worker", "hathi_viewer", "hathi_reports", "app_producer", "app_web"]);
  for (const role of roles) expect(page).toContain(`| \`${role}\` |`);
  for (const role of ["hathi_worker", "hathi_viewer"]) {
    const script = scripts.find((text) => text.startsWith(`create role ${named(role)} `))!;
    await database.pool.query(script.replace(/^create role .*$/m, ""));
  }
});

test("the migrator installs the schema and owns it, but may create nothing else", async () => {
  expect(await query("hathi_owner", "select count(*)::int as jobs from graphile_worker._private_jobs")).toHaveLength(1);
  await as("hathi_owner", (utils) => utils.migrate());
  await expect(query("hathi_owner", "create schema other")).rejects.toMatchObject(denied);
  await expect(query("hathi_owner", "create table public.other ()")).rejects.toMatchObject(denied);
});

test("a worker runs, fails, schedules and recovers jobs", async () => {
  const ran: string[] = [];
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    connectionString: urlOf("hathi_worker"),
    noHandleSignals: true,
    logger,
    recovery: true,
    history: "full",
    concurrency: 2,
    crontab: "* * * * * tick ?fill=2m {}",
    taskList: {
      note: (payload) => void ran.push(JSON.stringify(payload)),
      tick: () => void ran.push("tick"),
      fail: () => {
        throw new Error("as expected");
      },
    },
  });
  await runner.addJob("note", 1, { jobKey: "k", queueName: "q" });
  await runner.addJob("note", 2, { jobKey: "k", queueName: "q", flags: ["a"] });
  await runner.addJobs([
    { identifier: "note", payload: 3 },
    { identifier: "fail", payload: {}, maxAttempts: 1 },
  ]);
  await until(() => ran.includes("2") && ran.includes("3"), { what: "the worker has run the jobs" });
  await until(async () => (await database.jobs()).some(({ last_error }) => last_error === "as expected"));
  await runner.stop();
  await as("hathi_worker", async (utils) => {
    await utils.sweepStaleWorkers();
    await utils.cleanup({ tasks: ["DELETE_PERMAFAILED_JOBS", "GC_JOB_QUEUES"] });
  });
  expect(lines.filter(({ level, message }) => level === "error" && !message.includes("as expected"))).toEqual([]);
  expect(await permissions("hathi_worker")).toBe("ok");
});

test("a worker that may not make partitions keeps history all the same, and says so once", async () => {
  const right = "execute on function graphile_worker._hathi_tend_history";
  await database.pool.query(named(`revoke ${right} from hathi_worker`));
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    connectionString: urlOf("hathi_worker"),
    noHandleSignals: true,
    logger,
    history: "outcomes",
    taskList: { kept: () => undefined },
  });
  try {
    const { id } = await runner.addJob("kept", {});
    await until(async () => (await as("hathi_worker", (utils) => utils.getJob(id)))?.state === "finished", {
      what: "the job is in history",
    });
    const warnings = (): string[] => lines.filter(({ level }) => level === "warning").map(({ message }) => message);
    await until(() => warnings().length > 0, { what: "the worker has warned" });
    await runner.stop();
    expect(warnings()).toEqual([
      expect.stringMatching(/^This role may not make and drop the partitions .* '_hathi_tend_history'/),
    ]);
  } finally {
    await database.pool.query(named(`grant ${right} to hathi_worker`));
  }
});

test("a worker keeps results and times, reports, obeys limits, guards and pauses, and cancels", async () => {
  const { logger, lines } = rememberingLogger();
  const metrics = makeMetrics();
  const runner = await run({
    connectionString: urlOf("hathi_worker"),
    noHandleSignals: true,
    logger,
    metrics,
    history: "full",
    concurrency: 2,
    limits: { service: { rateLimit: { limit: 100, period: "1s" } } },
    taskOptions: {
      report: { keepResult: true, limits: ["service"], concurrency: { limit: 1, key: "k" } },
      once: { transactional: true },
    },
    taskList: {
      report: (payload, { reportProgress }) => {
        reportProgress(0.5);
        return { k: (payload as { k: string }).k };
      },
      once: () => undefined,
      hold: (_, { abortSignal }) =>
        new Promise((_resolve, reject) => {
          abortSignal.addEventListener("abort", () => reject(abortSignal.reason));
        }),
    },
  });
  await as("hathi_worker", async (utils) => {
    expect(await utils.addJobAndWait("report", { k: "a" }, { timeout: "50s" })).toEqual({ k: "a" });
    const once = await utils.addJob("once", {});
    await utils.waitForJob(once.id, { timeout: "50s" });
    const later = new Date("2100-01-01Z");
    await utils.addJob("report", { k: "b" }, { debounce: { key: "d", delay: "1h" } });
    await utils.addJob("report", { k: "b" }, { throttle: { key: "t", period: "1h" }, runAt: later });
    await utils.addJob("report", { k: "b" }, { singleton: { key: "s" }, runAt: later });
    await utils.pause({ task: "report" }, { reason: "a test" });
    expect(await utils.listPauses()).toHaveLength(1);
    expect(await utils.resume({ task: "report" })).toBe(true);
    await utils.setLimit("service", { limit: 50, period: "1s" });
    expect((await utils.listLimits()).map(({ name }) => name)).toContain("service");
    await utils.clearLimit("service");
    const held = await utils.addJob("hold", {});
    await until(async () => (await database.job(held.id))?.locked_at, { what: "the job runs" });
    await utils.cancelJobs([held.id], { reason: "a test" });
    await expect(utils.waitForJob(held.id, { timeout: "50s" })).rejects.toThrow(/cancel/);
    const { id } = await utils.beginAction({ action: "retry", target: {} });
    await utils.reportAction(id, { changed: 1, outcome: "done" });
    await utils.cleanup({ tasks: ["DROP_EXPIRED_HISTORY"] });
  });
  expect(await metrics.prometheus()).toContain('hathi_jobs_finished_total{task="report"');
  await runner.stop();
  // It may not build indexes; whoever migrates does.
  expect(lines.filter(({ level }) => level === "error" || level === "warning")).toEqual([
    { level: "warning", message: expect.stringContaining("must be owner of table _private_jobs") },
  ]);
  const built = "select from pg_indexes where indexname like '_hathi_limit_%' and tablename = '_private_jobs'";
  await as("hathi_worker", (utils) => utils.migrate());
  expect(await database.query(built)).toEqual([]);
  await as("hathi_owner", (utils) => utils.migrate());
  expect((await database.query(built)).length).toBeGreaterThan(0);
});

test("a worker may not change the schema or its ledgers", async () => {
  for (const text of [
    "drop table graphile_worker._private_jobs",
    "create table graphile_worker.other ()",
    "create or replace function graphile_worker.remove_job(job_key text) returns void language sql as ''",
    "insert into graphile_worker.migrations (id) values (21)",
    "delete from graphile_worker._hathi_migrations",
  ]) {
    await expect(query("hathi_worker", text), text).rejects.toMatchObject(denied);
  }
});

test("a viewer reads everything and writes nothing", async () => {
  const { id } = await as("hathi_owner", (utils) => utils.addJob("secret", { card: "1234" }));
  await as("hathi_viewer", async (utils) => {
    expect((await utils.listJobs({ task: "secret" })).jobs).toMatchObject([{ id }]);
    expect(await utils.getJob(id)).toMatchObject({ payload: { card: "1234" } });
    expect((await utils.explainJob(id)).state).toBe("waiting");
    expect(await utils.getJobStats({})).toMatchObject({ oldestWaiting: expect.anything() });
    await expect(utils.addJob("secret", {})).rejects.toMatchObject(denied);
  });
  expect(await permissions("hathi_viewer")).toBe("ok");
  for (const text of [
    `update graphile_worker._private_jobs set priority = 1`,
    `delete from graphile_worker._private_jobs`,
    `select graphile_worker.complete_jobs('{${id}}')`,
    `select graphile_worker.force_unlock_workers('{a}')`,
  ]) {
    await expect(query("hathi_viewer", text), text).rejects.toMatchObject(denied);
  }
});

test("a viewer reads history, errors, limits, pauses, times and actions, and the dashboard shows it all", async () => {
  await as("hathi_viewer", async (utils) => {
    expect((await utils.listHistory({ task: "note" })).entries.length).toBeGreaterThan(0);
    expect((await utils.listErrors()).length).toBeGreaterThan(0);
    expect((await utils.listLimits()).length).toBeGreaterThan(0);
    expect(await utils.listPauses()).toEqual([]);
    expect((await utils.getJobTimes()).length).toBeGreaterThan(0);
    expect((await utils.getJobTrends()).stepMs).toBeGreaterThan(0);
    expect((await utils.getJobFigures()).tasks.length).toBeGreaterThan(0);
    expect((await utils.listActions()).actions.length).toBeGreaterThan(0);
    expect(await utils.listWorkers()).toBeDefined();
    await expect(utils.pause({ task: "note" })).rejects.toMatchObject(denied);
    await expect(utils.setLimit("service", { limit: 1 })).rejects.toMatchObject(denied);
    await expect(utils.beginAction({ action: "retry", target: {} })).rejects.toMatchObject(denied);
  });
  const desk = openDesk(database, { connectionString: urlOf("hathi_viewer") });
  for (const { method, path } of routes) {
    if (method !== "GET" || path === "stream") continue;
    const { status, body } = await desk.get<unknown>(path === "find" ? "find?text=1" : path);
    expect(status === 400 || status === 200 || status === 404, `${path}: ${status} ${JSON.stringify(body)}`).toBe(true);
  }
});

/** Without the library, which would want to read the ledgers. */
async function plainly(role: string, text: string): Promise<unknown[]> {
  const { default: pg } = await import("pg");
  const client = new pg.Client({ connectionString: urlOf(role) });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

test("a report sees jobs without their payloads", async () => {
  await as("hathi_owner", (utils) => utils.addJob("secret", { card: "1234" }));
  const rows = await plainly("hathi_reports", "select * from graphile_worker.jobs where task_identifier = 'secret'");
  expect(rows[0]).toMatchObject({ task_identifier: "secret" });
  expect(rows[0]).not.toHaveProperty("payload");
  await expect(plainly("hathi_reports", "select * from graphile_worker._private_jobs")).rejects.toMatchObject(denied);
});

test("a producer adds jobs of its tasks through the function, and can do nothing else", async () => {
  const [added] = (await plainly("app_producer", `select app_jobs.add_job('send_email', '{"to": "ada"}') as id`)) as {
    id: string;
  }[];
  expect(await database.job(added!.id)).toMatchObject({ task_identifier: "send_email", payload: { to: "ada" } });
  for (const text of [
    "select app_jobs.add_job('drop_everything')",
    "select app_jobs.add_job(null)",
    "select graphile_worker.add_job('send_email')",
    "select * from graphile_worker.jobs",
    "create table public.mine ()",
  ]) {
    await expect(plainly("app_producer", text), text).rejects.toMatchObject(denied);
  }
  await expect(plainly("hathi_reports", "select app_jobs.add_job('send_email')")).rejects.toMatchObject(denied);
});

test("a producer with policies adds jobs of its tasks with the library, and sees no others", async () => {
  await as("hathi_owner", (utils) => utils.addJob("secret", { card: "1234" }));
  await as("app_web", async (utils) => {
    const job = await utils.addJob("send_email", { to: "ada" }, { queueName: "mail", priority: 3 });
    expect(job).toMatchObject({ task_identifier: "send_email", payload: { to: "ada" } });
    const jobs = await utils.addJobs([
      { identifier: "send_email", payload: 1 },
      { identifier: "resize_image", payload: 2, queueName: "new" },
    ]);
    expect(jobs).toHaveLength(2);
    await expect(utils.addJob("secret", {})).rejects.toMatchObject(denied);
    await expect(utils.addJobs([{ identifier: "unheard_of", payload: 1 }])).rejects.toMatchObject(denied);
    await expect(utils.addJob("send_email", {}, { jobKey: "k" })).rejects.toMatchObject(denied);
    await expect(utils.completeJobs([job.id])).rejects.toMatchObject(denied);
  });
  expect(
    await query(
      "app_web",
      "select distinct task.identifier from graphile_worker._private_jobs as job join graphile_worker._private_tasks as task on task.id = job.task_id order by 1",
    ),
  ).toEqual([{ identifier: "resize_image" }, { identifier: "send_email" }]);
  const [secret] = await database.query<{ id: number }>(
    "select id from graphile_worker._private_tasks where identifier = 'secret'",
  );
  await expect(
    query("app_web", `insert into graphile_worker._private_jobs (task_id) values (${secret!.id})`),
  ).rejects.toMatchObject(denied);
  await expect(query("app_web", "update graphile_worker._private_jobs set priority = 0")).rejects.toMatchObject(denied);
  expect(await permissions("app_web")).toBe("problem");
});
