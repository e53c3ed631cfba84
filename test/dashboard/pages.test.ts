import { afterAll, beforeAll, expect, test } from "vitest";
import type {
  AuditPage,
  CountAnswer,
  CronPage,
  ErrorDetails,
  ErrorsPage,
  FindAnswer,
  HistoryPageAnswer,
  JobDetails,
  JobsPage,
  LimitsPage,
  Overview,
  QueuesPage,
  Session,
  TaskDetails,
  TasksPage,
  WorkersPage,
} from "../../src/dashboard/contract.ts";
import {
  defineTask,
  type JobHelpers,
  makeWorkerUtils,
  parseCrontab,
  type QueueUtils,
  type Runner,
  run,
} from "../../src/index.ts";
import { makeMetrics } from "../../src/metrics/index.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { type Desk, openDesk, readEvents } from "./kit.ts";

/* Every page, against a running worker with jobs in every state. */

let db: TestDatabase;
let utils: QueueUtils;
let runner: Runner;
let desk: Desk;
const held = deferred<void>();
const ids: Record<string, string> = {};
const trace = { trace_id: "4bf92f3577b34da6a3ce929d0e0e4736", span_id: "00f067aa0ba902b7", flags: 1 };

beforeAll(async () => {
  db = await freshDatabase({ cleanUp: () => undefined });
  const { logger } = rememberingLogger();
  utils = await makeWorkerUtils({ pgPool: db.pool, logger });
  const tasks = {
    "mail/send": defineTask({ identifier: "mail/send", run: async () => undefined }),
    hold: (_payload: unknown, { reportProgress }: JobHelpers) => {
      reportProgress?.({ done: 3, total: 4, note: "three of four" });
      return held.promise;
    },
    broken: () => Promise.reject(new TypeError("total is undefined")),
    order: async (_payload: unknown, { addJob }: JobHelpers) =>
      void (await addJob("mail/send", {}, { runAt: new Date("2035-01-01T00:00:00Z") })),
  };
  runner = await run({
    connectionString: db.url,
    logger,
    taskList: tasks,
    crontab: " ",
    concurrency: 4,
    recovery: true,
    appVersion: "4.2.0",
    history: "full",
    metrics: makeMetrics(),
    noHandleSignals: true,
  });
  const add = async (name: string, ...args: Parameters<QueueUtils["addJob"]>): Promise<void> => {
    ids[name] = (await utils.addJob(...args)).id;
  };
  await add("done", "mail/send", { to: "ada@example.com", password: "hunter2" }, { jobKey: "mail-1" });
  await add("held", "hold", {}, { queueName: "tenant-17" });
  await add("behind", "hold", {}, { queueName: "tenant-17" });
  await add("dead", "broken", { _trace: trace, invoice: 9917 }, { maxAttempts: 1 });
  await add("traced", "nobody-has-it", { _trace: trace });
  await add(
    "later",
    "mail/send",
    { token: "abc", deep: { list: [{ secret: 1 }] } },
    { runAt: new Date("2035-01-01T00:00:00Z"), flags: ["slow"] },
  );
  await until(async () => (await utils.getJob(ids.held!))?.state === "running");
  await until(async () => (await utils.getJob(ids.dead!))?.state === "dead");
  await until(async () => (await utils.getJob(ids.done!))?.state === "finished");
  // What a worker records every ten seconds.
  await db.query(`
    insert into graphile_worker._hathi_job_times (period, starts_at, task, waits, runs, succeeded, failed, permanently_failed)
    values ('minute', date_trunc('minute', now()), 'mail/send', '{60}', '{60}', 60, 0, 0), ('minute', date_trunc('minute', now()), 'broken', '{2}', '{2}', 0, 2, 1)`);
  desk = openDesk(
    db,
    {
      title: "staging",
      tasks,
      cronItems: parseCrontab(
        "*/5 9-17 * * 1-5 mail/send ?id=digest {}\n0 4 * * * mail/send ?id=nightly&tz=Europe/Berlin {}",
      ),
    },
    true,
  );
}, 60_000);
afterAll(async () => {
  held.resolve();
  await desk.dashboard.close();
  await runner.stop();
  await utils.release();
  await db.drop();
});

async function read<T>(path: string): Promise<T> {
  const { status, body } = await desk.get<T>(path);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

test("the session says who looks at what, and what there is", async () => {
  expect(await read<Session>("session")).toMatchObject({
    user: null,
    isReadOnly: false,
    canSignOut: false,
    title: "staging",
    database: db.name,
    schema: "graphile_worker",
    has: { metrics: true, history: true },
    tasks: [
      { name: "mail/send", isChecked: false },
      { name: "hold", isChecked: false },
      { name: "broken", isChecked: false },
      { name: "order", isChecked: false },
    ],
  });
});

test("the overview tells rates, counts, workers, tasks and what is wrong", async () => {
  const page = await until(async () => {
    const found = await read<Overview>("overview?span=15m");
    return found.counts.running.count === 1 && found.counts.dead.count === 1 && found.workers.busy === 1 && found;
  });
  expect(page.counts).toMatchObject({ waiting: { count: 2 }, scheduled: { count: 1 } });
  expect(page.workers).toEqual({ alive: 1, silent: 0, slots: 4, busy: 1 });
  expect(page.starts).toEqual([{ at: expect.any(Number), version: "4.2.0", workers: 1 }]);
  expect(page.figures.finishedPerMinute).toBeGreaterThan(0);
  expect(page.figures.failureRate).toBeGreaterThan(0.01);
  expect(page.figures.oldestId).toBe(ids.behind);
  expect(page.tasks.find(({ task }) => task === "mail/send")).toMatchObject({
    later: { count: 1, isMore: false },
    workers: 1,
    failureRate: 0,
    isFallingBehind: false,
  });
  expect(page.series.at).toHaveLength(16);
  expect(page.series.succeeded.at(-1)! + page.series.succeeded.at(-2)!).toBeGreaterThanOrEqual(60);
  expect(page.series.succeeded[0]).toBeNull();
  expect(page.warnings.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["no-worker-for-task", "failing"]));
  expect(page.warnings[0]).toMatchObject({
    severity: "problem",
    message: "No live worker has the task nobody-has-it: 1 ready.",
    link: "jobs?state=waiting&task=nobody-has-it",
  });
});

test("jobs are listed by any filter, in pages, and counted", async () => {
  const all = await read<JobsPage>("jobs");
  expect(all.jobs.map(({ id }) => id)).toEqual([ids.later, ids.traced, ids.dead, ids.behind, ids.held]);
  const first = await read<JobsPage>("jobs?limit=2");
  expect(first.jobs).toHaveLength(2);
  const second = await read<JobsPage>(`jobs?limit=2&after=${first.next}`);
  expect(second.jobs.map(({ id }) => id)).toEqual([ids.dead, ids.behind]);

  const idsOf = async (query: string): Promise<string[]> =>
    (await read<JobsPage>(`jobs?${query}`)).jobs.map(({ id }) => id);
  expect(await idsOf("state=running")).toEqual([ids.held]);
  expect(await idsOf("state=dead&task=broken")).toEqual([ids.dead]);
  expect(await idsOf("queue=tenant-17&state=waiting")).toEqual([ids.behind]);
  expect(await idsOf("search=UNDEFINED")).toEqual([ids.dead]);
  expect(await idsOf(`since=${new Date().toISOString()}`)).toEqual([]);
  expect(await idsOf("search=abc")).toEqual([]);
  const [dead] = (await read<JobsPage>("jobs?state=dead")).jobs;
  expect(dead).toMatchObject({
    attempts: 1,
    maxAttempts: 1,
    lastError: expect.stringContaining("total is undefined"),
    flags: [],
  });
  expect(await read<CountAnswer>("count?task=hold")).toEqual({ count: 2, isMore: false });
});

test("a job tells why, what happened to it, its payload without secrets, and what can be done", async () => {
  const later = await read<JobDetails>(`job?id=${ids.later}`);
  expect(later).toMatchObject({
    state: "scheduled",
    task: "mail/send",
    payload: { token: "•••", deep: { list: [{ secret: "•••" }] } },
    details: { flags: ["slow"], runAt: "2035-01-01T00:00:00.000Z" },
    actions: ["runNow", "reschedule", "cancel", "fail", "remove"],
  });
  expect(later.why[0]).toMatchObject({ kind: "scheduled", message: expect.stringContaining("2035-01-01") });
  expect(later.timeline.map(({ kind }) => kind)).toEqual(["added", "due"]);

  const behind = await read<JobDetails>(`job?id=${ids.behind}`);
  expect(behind.why[0]).toMatchObject({ kind: "queue-held", link: `jobs/${ids.held}` });

  const dead = await read<JobDetails>(`job?id=${ids.dead}`);
  expect(dead.why[0]!.message).toMatch(/^Its attempts are used up \(1 of 1\), .* Last error: total is undefined\.$/);
  expect(dead.timeline.map(({ kind }) => kind)).toEqual(["added", "started", "permanentlyFailed"]);
  expect(dead.timeline[2]).toMatchObject({
    attempt: 1,
    error: expect.stringContaining("total is undefined"),
    fingerprint: expect.any(String),
    stack: expect.stringMatching(/^ {4}at .*pages\.test\.ts:\d+/),
  });
  expect(dead).toMatchObject({
    payload: { invoice: 9917 },
    trace: { traceId: trace.trace_id, spanId: trace.span_id },
    related: [{ id: ids.traced, added: "later", task: "nobody-has-it", state: "waiting" }],
    lastError: expect.stringContaining("total is undefined"),
    actions: ["retry", "reschedule", "remove"],
  });

  const done = await read<JobDetails>(`job?id=${ids.done}`);
  expect(done).toMatchObject({
    state: "finished",
    outcome: "succeeded",
    details: null,
    payload: { to: "ada@example.com", password: "•••" },
    actions: [],
  });
  expect((await desk.get(`job?id=999999`)).status).toBe(404);
});

test("a job that runs tells how far it is, on its page, in lists and beside its worker", async () => {
  const progress = { percent: 75, message: "three of four" };
  await until(async () => (await read<JobDetails>(`job?id=${ids.held}`)).details?.progress);
  expect(await read<JobDetails>(`job?id=${ids.held}`)).toMatchObject({ details: { progress }, actions: ["cancel"] });
  await until(async () => (await read<WorkersPage>("workers")).workers[0]?.running[0]?.progress?.percent === 75);
});

test("errors are grouped, and a group shows its stack, its attempts and the jobs that are still there", async () => {
  const { groups, lookedAt } = await read<ErrorsPage>("errors?span=1d");
  expect(groups).toMatchObject([{ task: "broken", errorClass: "TypeError", count: { count: 1 }, jobs: { count: 1 } }]);
  expect(groups[0]!.spark).toHaveLength(24);
  expect(groups[0]!.spark.at(-1)).toBe(1);
  expect(lookedAt).toBeNull();
  const details = await read<ErrorDetails>(`error?fingerprint=${groups[0]!.fingerprint}`);
  expect(details).toMatchObject({
    present: { count: 1, isMore: false },
    attempts: [{ id: ids.dead, outcome: "permanentlyFailed" }],
  });
  expect(details.error).toContain("total is undefined");
  expect(details.stack).toMatch(/^ {4}at .*pages\.test\.ts:\d+/);
  expect((await read<JobsPage>(`jobs?error=${groups[0]!.fingerprint}`)).jobs.map(({ id }) => id)).toEqual([ids.dead]);
  expect((await desk.get("error?fingerprint=none")).status).toBe(404);
});

test("tasks, one task, queues, workers, history and limits", async () => {
  const { tasks } = await read<TasksPage>("tasks?span=15m");
  expect(tasks.map(({ task }) => task).sort()).toEqual(["broken", "hold", "mail/send", "nobody-has-it", "order"]);
  const task = await read<TaskDetails>("task?name=mail/send&span=15m");
  expect(task).toMatchObject({
    row: { task: "mail/send" },
    failures: [],
    cron: [{ task: "mail/send" }, { task: "mail/send" }],
  });
  expect((await read<TaskDetails>("task?name=broken&span=15m")).failures).toMatchObject([{ id: ids.dead }]);
  expect((await desk.get("task?name=none")).status).toBe(404);

  // Which jobs run is looked for in the background where that takes long.
  const { queues } = await until(async () => {
    const page = await read<QueuesPage>("queues");
    return page.queues[0]?.job && page;
  });
  expect(queues).toMatchObject([
    {
      name: "tenant-17",
      waiting: { count: 1 },
      heldBy: expect.stringMatching(/^pool-/),
      job: { id: ids.held, task: "hold" },
      pause: null,
    },
  ]);
  expect((await read<QueuesPage>("queues?search=18")).queues).toEqual([]);

  const { workers } = await until(async () => {
    const page = await read<WorkersPage>("workers");
    return page.workers[0]?.jobs === 1 && page.workers[0].running.length === 1 && page;
  });
  expect(workers).toMatchObject([
    {
      life: "alive",
      slots: 4,
      jobs: 1,
      queues: 1,
      pid: process.pid,
      appVersion: "4.2.0",
      tasks: ["mail/send", "hold", "broken", "order"],
      running: [{ id: ids.held, task: "hold" }],
    },
  ]);

  const page = await read<HistoryPageAnswer>("history?limit=1");
  expect(page.entries).toHaveLength(1);
  const rest = await read<HistoryPageAnswer>(`history?limit=1&after=${encodeURIComponent(page.next!)}`);
  expect([...page.entries, ...rest.entries].map(({ id }) => id).sort()).toEqual([ids.done, ids.dead].sort());
  expect((await read<HistoryPageAnswer>("history?outcome=succeeded&task=mail/send&key=mail-1")).entries).toMatchObject([
    { id: ids.done },
  ]);
  expect(await read<LimitsPage>("limits")).toMatchObject({ pauses: [] });
  expect((await read<AuditPage>("audit?by=nobody")).entries).toEqual([]);
});

test("the crontab's entries show their next runs in their zone, and when one was missed", async () => {
  await db.query(`
    insert into graphile_worker._private_known_crontabs (identifier, known_since, last_execution)
    values ('nightly', now() - interval '9 days', now() - interval '5 days'), ('elsewhere', now(), null)`);
  // A list that was slow to read before is shown as it was for fifty times as long.
  const entries = await until(
    async () => {
      const page = await read<CronPage>("cron");
      return page.entries.length === 3 && page.entries;
    },
    { what: "the page shows what was added", withinMs: 100_000 },
  );
  expect(entries.map(({ identifier }) => identifier).sort()).toEqual(["digest", "elsewhere", "nightly"]);
  expect(entries.at(-1)).toMatchObject({ identifier: "elsewhere", task: null, canRunNow: false });
  expect(entries.find(({ identifier }) => identifier === "digest")).toMatchObject({
    pattern: "*/5 9-17 * * 1-5",
    timeZone: "UTC",
  });
  const nightly = entries.find(({ identifier }) => identifier === "nightly")!;
  expect(nightly.next[0]!.localTime).toMatch(/T04:00:00\+0[12]:00$/);
  expect(nightly.missedAt).not.toBeNull();
}, 120_000);

test("a person who types a few characters finds jobs, tasks and queues", async () => {
  expect(await read<FindAnswer>("find?q=tenant")).toEqual({ jobs: [], tasks: [], queues: ["tenant-17"] });
  expect((await read<FindAnswer>("find?q=MAIL")).tasks).toEqual(["mail/send"]);
  expect((await read<FindAnswer>(`find?q=%23${ids.dead}`)).jobs).toMatchObject([{ id: ids.dead }]);
});

test("a stream pings, gives the page, then what has changed, and stops asking when nobody listens", async () => {
  const response = await desk.dashboard.fetch(new Request("http://localhost/api/stream?topic=jobs&task=live"));
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  expect(response.headers.get("x-accel-buffering")).toBe("no");
  let isAdded = false;
  const events = await readEvents(response, (event, data) => {
    if (event === "jobs" && !isAdded) void utils.addJob("live", {});
    isAdded ||= event === "jobs";
    return (data as Partial<JobsPage>).jobs?.length === 1;
  });
  expect(events.map(([event]) => event)).toEqual(["ping", "jobs", "jobs"]);
  const overview = await desk.dashboard.fetch(new Request("http://localhost/api/stream?topic=overview&span=1h"));
  const [, [, snapshot]] = (await readEvents(overview, (event) => event === "overview")) as [
    unknown,
    [string, Overview],
  ];
  expect(snapshot.series.at).toHaveLength(3);
  expect((await desk.get("stream?topic=nothing")).status).toBe(400);
  expect((await desk.get("stream?topic=job&id=999999")).status).toBe(404);
});

test("a job shows what added it, and what it has added", async () => {
  const { id } = await utils.addJob("order", {});
  await until(async () => (await utils.getJobLinks(id)).added.length > 0);
  await until(async () => (await utils.getJob(id))?.state === "finished");
  const parent = await read<JobDetails>(`job?id=${id}`);
  expect(parent).toMatchObject({
    addedBy: [],
    added: [{ id: expect.any(String), task: "mail/send", state: "scheduled" }],
    hasAddedMore: false,
  });
  const child = await read<JobDetails>(`job?id=${parent.added[0]!.id}`);
  expect(child).toMatchObject({ addedBy: [{ id, task: "order", state: "succeeded" }], added: [] });
  await utils.completeJobs([child.id]);
});
