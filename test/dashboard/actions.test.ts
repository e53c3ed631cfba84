import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type {
  ActionBodies,
  ActionResult,
  AuditPage,
  JobActionName,
  LimitsPage,
  Session,
} from "../../src/dashboard/contract.ts";
import { actions } from "../../src/dashboard/server/actions/index.ts";
import { defineTask, makeWorkerUtils, parseCrontab, run } from "../../src/index.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { until } from "../support/wait.ts";
import { openDesk, type Told } from "./kit.ts";

/* Every action has its effect and its entry in the audit. */

const database = sharedDatabase();
const done = new Set<string>();

function open(): ReturnType<typeof openDesk> & {
  act<Name extends keyof ActionBodies>(name: Name, body: ActionBodies[Name]): Promise<Told<ActionResult>>;
} {
  const desk = openDesk(database(), {
    auth: () => ({ name: "ann", can: "everything" }),
    tasks: {
      typed: defineTask({ identifier: "typed", payload: z.object({ n: z.number() }), run: async () => undefined }),
    },
    cronItems: parseCrontab("0 4 * * * report ?id=nightly&queue=reports&priority=3 {day: 1}"),
  });
  return {
    ...desk,
    act: (name, body) => {
      done.add(name);
      return desk.post(`actions/${name}`, body);
    },
  };
}

async function addJobs(count: number, spec: object = {}): Promise<string[]> {
  const utils = await makeWorkerUtils({ pgPool: database().pool, logger: rememberingLogger().logger });
  const jobs = await utils.addJobs(Array.from({ length: count }, () => ({ identifier: "t", payload: {}, ...spec })));
  return jobs.map(({ id }) => id);
}

const cases: { [Name in JobActionName]: { body?: object; spec?: object; before?: string; effect: string } } = {
  retry: { before: "attempts = max_attempts", effect: "attempts = 0 and run_at <= now()" },
  runNow: { spec: { runAt: new Date("2035-01-01") }, effect: "run_at <= now() and attempts = 0" },
  reschedule: {
    body: { runAt: "2036-01-01T00:00:00Z", priority: -5, maxAttempts: 3 },
    effect: "run_at = '2036-01-01T00:00:00Z' and priority = -5 and max_attempts = 3",
  },
  cancel: { body: { reason: "no longer wanted" }, effect: "false" },
  fail: { body: { reason: "given up" }, effect: "attempts = max_attempts and last_error = 'given up'" },
  remove: { effect: "false" },
};

test.each(Object.keys(cases) as JobActionName[])(
  "%s changes the jobs that are named, leaves running ones alone, and says so",
  async (name) => {
    const { body = {}, spec = {}, before, effect } = cases[name];
    const { act, get } = open();
    const ids = await addJobs(2, spec);
    const [running = ""] = await addJobs(1);
    if (before) await database().query(`update graphile_worker._private_jobs set ${before} where id = any($1)`, [ids]);
    await database().query(
      "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where id = $1",
      [running],
    );

    const { status, body: result } = await act(name, { ids: [...ids, running], ...body } as never);
    expect(status, JSON.stringify(result)).toBe(200);
    const isCancel = name === "cancel";
    expect(result.changed).toBe(isCancel ? 3 : 2);
    expect([...result.ids].sort()).toEqual((isCancel ? [...ids, running] : ids).sort());
    expect(result.message).toContain(isCancel ? "3 jobs." : "1 other was running or gone, and left alone.");
    const [row] = await database().query<{ matching: number }>(
      `select count(*)::int as matching from graphile_worker._private_jobs where id = any($1) and (${effect})`,
      [ids],
    );
    expect(row!.matching).toBe(effect === "false" ? 0 : 2);
    const left = await database().query("select from graphile_worker._private_jobs where id = any($1)", [ids]);
    expect(left).toHaveLength(effect === "false" ? 0 : 2);
    const { body: audit } = await get<AuditPage>(`audit?action=${name}`);
    expect(audit.entries[0]).toMatchObject({
      id: result.audit,
      by: "ann",
      action: name,
      state: "done",
      changed: result.changed,
      target: expect.stringContaining("3 jobs: "),
    });
  },
);

test("a job is added with everything that the form offers, and checked by its task", async () => {
  const { act, get } = open();
  const added = await act("add", {
    task: "mail",
    payload: { to: "ada" },
    queue: "q",
    key: "k",
    keyMode: "preserve_run_at",
    runAt: "2035-01-01T00:00:00.000Z",
    priority: 7,
    maxAttempts: 2,
    flags: ["slow"],
  });
  expect(added.status).toBe(200);
  expect(await database().job(added.body.ids[0]!)).toMatchObject({
    task_identifier: "mail",
    payload: { to: "ada" },
    queue_name: "q",
    key: "k",
    run_at: new Date("2035-01-01T00:00:00.000Z"),
    priority: 7,
    max_attempts: 2,
    flags: { slow: true },
  });
  const unfit = await act("add", { task: "typed", payload: { n: "x" } });
  expect(unfit).toMatchObject({
    status: 400,
    body: { error: { code: "bad-request", message: expect.stringContaining("n") } },
  });
  expect((await act("add", { task: "typed", payload: { n: 1 } })).status).toBe(200);
  const { body } = await get<AuditPage>("audit?action=add&limit=2");
  expect(body.entries).toMatchObject([
    { state: "done", target: "task 'typed'" },
    { state: "failed", changed: 0, message: expect.stringContaining("n") },
  ]);
});

test("a copy keeps the values that nobody sees, at their place and for their task only", async () => {
  const { act } = open();
  const original = (await act("add", { task: "login", payload: { user: "ada", password: "hunter2" } })).body.ids[0]!;
  const copy = await act("add", { task: "login", copyOf: original, payload: { user: "bob", password: "•••" } });
  expect(await database().job(copy.body.ids[0]!)).toMatchObject({ payload: { user: "bob", password: "hunter2" } });

  const elsewhere = await act("add", { task: "login", copyOf: original, payload: { user: "•••", password: "•••" } });
  expect(elsewhere.status).toBe(400);
  expect((await act("add", { task: "print", copyOf: original, payload: { password: "•••" } })).status).toBe(400);
  expect((await act("add", { task: "login", payload: { password: "•••" } })).status).toBe(400);
  expect((await act("add", { task: "login", copyOf: "999999999", payload: { password: "•••" } })).status).toBe(409);
});

test("everything that can be paused is paused and resumed in the name of who did it", async () => {
  const { act } = open();
  const utils = await makeWorkerUtils({ pgPool: database().pool, logger: rememberingLogger().logger });
  for (const target of [
    { kind: "task", name: "mail" },
    { kind: "queue", name: "q" },
    { kind: "worker", name: "pool-1" },
    { kind: "cron", name: "nightly" },
    { kind: "all" },
  ] as const) {
    const paused = await act("pause", { target, until: "2035-01-01T00:00:00.000Z", reason: "deploy" });
    expect(paused.body).toMatchObject({ changed: 1 });
    expect(await utils.listPauses()).toMatchObject([
      {
        kind: target.kind,
        name: "name" in target ? target.name : null,
        pausedBy: "ann",
        reason: "deploy",
        until: new Date("2035-01-01"),
      },
    ]);
    expect((await act("resume", { target })).body).toMatchObject({ changed: 1 });
    expect((await act("resume", { target })).body).toMatchObject({ changed: 0 });
  }
  expect(await act("pause", { target: { kind: "all" }, until: "2020-01-01T00:00:00Z" })).toMatchObject({ status: 400 });
});

test("a crontab entry runs now with its own payload, queue and priority", async () => {
  const { act } = open();
  const { body } = await act("runCron", { identifier: "nightly" });
  expect(await database().job(body.ids[0]!)).toMatchObject({
    task_identifier: "report",
    queue_name: "reports",
    priority: 3,
    payload: { day: 1, _cron: { ts: expect.any(String), backfilled: false } },
  });
  expect((await act("runCron", { identifier: "other" })).status).toBe(404);
});

test("what a dead worker holds is freed, and what a living one holds is not", async () => {
  const { act } = open();
  const [job = ""] = await addJobs(1);
  await database().query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-dead' where id = $1",
    [job],
  );
  expect((await act("unlockWorker", { worker: "pool-dead" })).body).toMatchObject({ changed: 1 });
  expect(await database().job(job)).toMatchObject({ locked_by: null });
  expect((await act("unlockWorker", { worker: "pool-dead" })).status).toBe(404);

  await database().query("select graphile_worker.worker_heartbeat('pool-alive', '{}'::json)");
  await database().query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool-alive' where id = $1",
    [job],
  );
  expect((await act("unlockWorker", { worker: "pool-alive" })).status).toBe(409);
  expect(await database().job(job)).toMatchObject({ locked_by: "pool-alive" });
});

test("limits that do not exist cannot be changed", async () => {
  const { act, get } = open();
  const none = { name: "none", kind: "concurrency", path: [] } as const;
  expect((await act("setLimit", { ...none, limit: 1 })).status).toBe(404);
  expect((await act("clearLimit", none)).status).toBe(404);
  expect((await get<LimitsPage>("limits")).body.limits).toEqual([]);
  expect((await get<Session>("session")).body.has.limits).toBe(false);
});

test("limits that a worker declares are shown, changed and taken back, each by its kind and path", async () => {
  const { act, get } = open();
  const { logger } = rememberingLogger();
  const runner = await run({
    pgPool: database().pool,
    logger,
    noHandleSignals: true,
    taskList: { sync: () => undefined },
    taskOptions: {
      sync: {
        concurrency: [{ limit: 50 }, { limit: 2, key: ["tenant.id"] }],
        rateLimit: { limit: 100, period: "1m", key: "tenant.id" },
        fair: "region",
      },
    },
  });
  onTestFinished(() => runner.stop());
  const shown = async (): Promise<unknown[]> =>
    (await get<LimitsPage>("limits")).body.limits.map(({ kind, path, limit, weight, keys, isChanged }) => [
      [kind, path.join("|"), limit, weight, isChanged].join(" "),
      ...keys.map((own) => [own.key, own.limit, own.weight].join(" ")),
    ]);
  const declared = [
    ["concurrency  50 1 false"],
    ["concurrency tenant.id 2 1 false"],
    ["fair region  1 false"],
    ["rate tenant|id 100 1 false"],
  ];
  await until(async () => (await shown()).length === declared.length);
  expect(await shown()).toEqual(declared);
  await until(async () => (await get<Session>("session")).body.has.limits);

  const whole = { name: "sync", kind: "concurrency", path: [] } as const;
  const byTenant = { ...whole, path: ["tenant.id"] };
  const turns = { name: "sync", kind: "fair", path: ["region"] } as const;
  const changes = [
    await act("setLimit", { ...whole, limit: 5 }),
    await act("setLimit", { ...byTenant, key: "acme", limit: 20, weight: 3 }),
    await act("setLimit", { ...byTenant, key: "", limit: 0 }),
    await act("setLimit", { ...turns, weight: 4 }),
  ];
  expect(changes.map(({ status, body }) => [status, body.changed])).toEqual(changes.map(() => [200, 1]));
  expect(await shown()).toEqual([
    ["concurrency  5 1 true"],
    ["concurrency tenant.id 2 1 false", " 0 ", "acme 20 3"],
    ["fair region  4 true"],
    ["rate tenant|id 100 1 false"],
  ]);

  // The same path, written in one step and in two, is not the same limit.
  expect((await act("setLimit", { ...byTenant, path: ["tenant", "id"], limit: 1 })).status).toBe(404);
  expect((await act("clearLimit", { ...whole, key: "acme" })).status).toBe(400);
  expect((await act("setLimit", whole)).status).toBe(400);

  expect((await act("clearLimit", { ...byTenant, key: "" })).body.changed).toBe(1);
  expect((await act("clearLimit", { ...byTenant, key: "acme" })).body.changed).toBe(1);
  expect((await act("clearLimit", turns)).body.changed).toBe(1);
  expect((await act("clearLimit", whole)).body.changed).toBe(1);
  expect(await shown()).toEqual(declared);
  expect((await act("clearLimit", whole)).body).toMatchObject({ changed: 0 });
  const { body: set } = await get<AuditPage>("audit?action=setLimit&limit=4");
  expect(set.entries.find(({ message }) => message?.includes("20"))).toMatchObject({
    by: "ann",
    state: "done",
    target: "concurrency limit 'sync' by tenant.id for 'acme'",
    link: "limits",
  });
});

test("a limit that the library cannot tell from another is left alone, and the caller told why", async () => {
  const { act } = open();
  const { logger } = rememberingLogger();
  const runner = await run({
    pgPool: database().pool,
    logger,
    noHandleSignals: true,
    limits: { twin: { concurrency: 10 } },
    taskList: { twin: () => undefined },
    taskOptions: { twin: { concurrency: 5, limits: ["twin"] } },
  });
  onTestFinished(() => runner.stop());
  const twin = { name: "twin", kind: "concurrency", path: [] } as const;
  const answer = await until(async () => {
    const told = await act("setLimit", { ...twin, limit: 1 });
    return told.status !== 404 && told;
  });
  expect(answer).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining("Several limits are called 'twin'") } },
  });
});

test("no action is without a test here", () => {
  expect([...done].sort()).toEqual(Object.keys(actions).sort());
});
