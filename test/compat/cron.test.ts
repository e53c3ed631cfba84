import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Job } from "../../src/index.ts";
import type { TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { bothWays } from "./both-ways.ts";
import { know, knownCrontabs, startCron, stopClock } from "./cron-kit.ts";
import { loadLibrary } from "./library.ts";

const start = "2026-01-01T00:10:30.000Z";
const minute = (min: number): string => `2026-01-01T00:${String(min).padStart(2, "0")}:00.000Z`;

/** Task and minute of each job, oldest first. */
async function runs(db: TestDatabase): Promise<string[]> {
  return (await db.jobs()).map((job) => {
    const { ts } = (job.payload as { _cron: { ts: string } })._cron;
    expect(job.run_at.toISOString()).toBe(ts);
    return `${job.task_identifier} ${ts.slice(11, 16)}`;
  });
}

bothWays(({ fresh, isOurs }) => {
  test("new entries are known from the start on; known ones keep their history", async () => {
    const db = await fresh();
    stopClock(start);
    await know(db, "old", "2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z");
    await know(db, "forgotten", "2025-01-01T00:00:00Z");
    const { started } = await startCron(isOurs, db, { crontab: "* * * * * a ?id=new&fill=1h\n0 0 1 6 * a ?id=old" });
    await started();
    expect(await knownCrontabs(db)).toEqual([
      { identifier: "forgotten", known_since: new Date("2025-01-01"), last_execution: null },
      { identifier: "new", known_since: new Date(start), last_execution: null },
      { identifier: "old", known_since: new Date("2025-01-01"), last_execution: new Date("2025-06-01") },
    ]);
    expect(await db.jobs()).toEqual([]);
  });

  test.each([
    { what: "nothing without a period", query: "", since: minute(0), last: null, expected: [] },
    { what: "what the period reaches", query: "?fill=3m", since: minute(0), last: null, expected: [8, 9, 10] },
    {
      what: "the minute since when the entry is known",
      query: "?fill=1h",
      since: minute(9),
      last: null,
      expected: [9, 10],
    },
    {
      what: "what comes after the last execution",
      query: "?fill=1h",
      since: minute(0),
      last: minute(8),
      expected: [9, 10],
    },
    { what: "nothing when all is done", query: "?fill=1h", since: minute(0), last: minute(10), expected: [] },
  ])("a back-fill takes $what", async ({ query, since, last, expected }) => {
    const db = await fresh();
    stopClock(start);
    await know(db, "a", since, last);
    const { started, count } = await startCron(isOurs, db, { crontab: `* * * * * a ${query}` });
    await started();
    // The original also tells of the minute that `last_execution` says is done; neither schedules it.
    expect(count("cron:backfill")).toBe(expected.length + (last && !isOurs ? 1 : 0));
    expect(await runs(db)).toEqual(expected.map((min) => `a ${minute(min).slice(11, 16)}`));
    const lastRun = expected.at(-1);
    expect(await knownCrontabs(db)).toMatchObject([
      { last_execution: lastRun === undefined ? last && new Date(last) : new Date(minute(lastRun)) },
    ]);
  });

  test("a job has everything that its entry says, and the defaults for the rest", async () => {
    const db = await fresh();
    stopClock(start);
    for (const identifier of ["bare", "x"]) await know(db, identifier, "2025-01-01T00:00:00Z");
    const { started } = await startCron(isOurs, db, {
      crontab: [
        "10 * * * * full ?id=x&fill=5m&max=3&queue=q&priority=5&jobKey=k {hello: 'you', _cron: 1}",
        "10 * * * * bare ?fill=5m",
      ].join("\n"),
    });
    await started();
    const _cron = { ts: minute(10), backfilled: true };
    const same = {
      run_at: new Date(minute(10)),
      attempts: 0,
      last_error: null,
      locked_at: null,
      flags: null,
      revision: 0,
    };
    expect(await db.jobs()).toMatchObject([
      {
        ...same,
        task_identifier: "full",
        payload: { hello: "you", _cron },
        queue_name: "q",
        max_attempts: 3,
        priority: 5,
        key: "k",
      },
      {
        ...same,
        task_identifier: "bare",
        payload: { _cron },
        queue_name: null,
        max_attempts: 25,
        priority: 0,
        key: null,
      },
    ]);
    expect((await db.jobs()).map(({ payload }) => payload)).toEqual([{ hello: "you", _cron }, { _cron }]);
  });

  test("with a job key, a back-fill leaves one job: the last, or with 'preserve_run_at' the last at the first's time", async () => {
    const db = await fresh();
    stopClock(start);
    for (const identifier of ["a", "b"]) await know(db, identifier, "2025-01-01T00:00:00Z");
    const { started } = await startCron(isOurs, db, {
      crontab: "* * * * * a ?fill=3m&jobKey=a\n* * * * * b ?fill=3m&jobKey=b&jobKeyMode=preserve_run_at",
    });
    await started();
    const _cron = { ts: minute(10), backfilled: true };
    expect(await db.jobs()).toMatchObject([
      { key: "a", run_at: new Date(minute(10)), revision: 2, payload: { _cron } },
      { key: "b", run_at: new Date(minute(8)), revision: 2, payload: { _cron } },
    ]);
  });

  test("a back-fill is told minute by minute, before cron says that it has started", async () => {
    const db = await fresh();
    stopClock(start);
    for (const identifier of ["a", "b"]) await know(db, identifier, minute(0));
    const { started, heard } = await startCron(isOurs, db, {
      crontab: "* * * * * a ?fill=2m&max=2\n*/5 * * * * b ?fill=2m {n: 1}",
    });
    await started();
    const known = { known_since: new Date(minute(0)), last_execution: null };
    const job = (task: string, min: number, rest: object, payload: object) => ({
      identifier: task,
      job: {
        task,
        payload: { ...payload, _cron: { ts: minute(min), backfilled: true } },
        runAt: minute(min),
        ...rest,
      },
      ...known,
    });
    const cron = expect.objectContaining({
      _active: true,
      release: expect.any(Function),
      promise: expect.any(Promise),
    });
    expect(heard()).toEqual([
      ["cron:starting", { cron, start: new Date(start) }],
      ["cron:backfill", { cron, timestamp: minute(9), itemsToBackfill: [job("a", 9, { maxAttempts: 2 }, {})] }],
      [
        "cron:backfill",
        {
          cron,
          timestamp: minute(10),
          itemsToBackfill: [job("a", 10, { maxAttempts: 2 }, {}), job("b", 10, {}, { n: 1 })],
        },
      ],
      ["cron:started", { cron, start: new Date(start) }],
    ]);
  });

  test("parsed items, with a pattern or a function, and a crontab's file are as good as its text", async () => {
    const db = await fresh();
    stopClock(start);
    for (const identifier of ["a", "z", "f"]) await know(db, identifier, "2025-01-01T00:00:00Z");
    const { parseCronItems } = await loadLibrary(isOurs);
    const options = { backfillPeriod: 3 * 60_000 };
    const items = await startCron(isOurs, db, {
      parsedCronItems: parseCronItems([
        { task: "a", match: "9 * * * *", options },
        { task: "b", match: ({ min, hour, dow }) => min === 8 && hour === 0 && dow === 4, options, identifier: "z" },
      ]),
    });
    await items.started();
    const folder = await mkdtemp(join(tmpdir(), "hathi-crontab-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, "crontab"), "10 * * * * f ?fill=3m\n");
    const file = await startCron(isOurs, db, { crontabFile: join(folder, "crontab") });
    await file.started();
    expect(await runs(db)).toEqual(["b 00:08", "a 00:09", "f 00:10"]);
  });

  test("parsed items may share an identifier, as long as they are not due together", async () => {
    const db = await fresh();
    stopClock(start);
    await know(db, "a", "2025-01-01T00:00:00Z");
    const { parseCronItems } = await loadLibrary(isOurs);
    const options = { backfillPeriod: 3 * 60_000 };
    const parsedCronItems = parseCronItems([
      { task: "a", match: "8 * * * *", options },
      { task: "a", match: "10 * * * *", options },
    ]);
    await (await startCron(isOurs, db, { parsedCronItems })).started();
    expect(await runs(db)).toEqual(["a 00:08", "a 00:10"]);
  });

  test("items that no parser has seen are refused, and so is what is no list", async () => {
    const db = await fresh();
    const item = { task: "a", match: () => true, options: { backfillPeriod: 0 }, payload: null, identifier: "a" };
    const advice = "you must use a helper e.g. `parseCrontab()` or `parseCronItems()` to produce this value.";
    await expect(startCron(isOurs, db, { parsedCronItems: [item as never] })).rejects.toThrow(advice);
    await expect(startCron(isOurs, db, { parsedCronItems: {} as never })).rejects.toThrow(
      `Expected \`parsedCronItems\` to be an array; ${advice}`,
    );
  });

  test("a timer that fires early is set again; one that fires late makes up for the minutes that it missed", async () => {
    const db = await fresh();
    const setClock = stopClock("2026-01-01T00:10:59.990Z");
    const { started, heard, count } = await startCron(isOurs, db, { crontab: "* * * * * a {n: 1}\n11 * * * * b" });
    await started();
    await until(() => count("cron:prematureTimer") > 0);
    expect(await db.jobs()).toEqual([]);
    setClock("2026-01-01T00:12:20.000Z");
    await until(() => count("cron:scheduled") === 2);

    const cron = expect.anything();
    const expectedTimestamp = Date.parse(minute(11));
    const job = (task: string, min: number, payload: object) => ({
      identifier: task,
      job: { task, payload: { ...payload, _cron: { ts: minute(min), backfilled: false } }, runAt: minute(min) },
    });
    const eleven = {
      cron,
      timestamp: expectedTimestamp,
      jobsAndIdentifiers: [job("a", 11, { n: 1 }), job("b", 11, {})],
    };
    const twelve = { cron, timestamp: Date.parse(minute(12)), jobsAndIdentifiers: [job("a", 12, { n: 1 })] };
    const early = { cron, currentTimestamp: Date.parse("2026-01-01T00:10:59.990Z"), expectedTimestamp };
    const late = { cron, currentTimestamp: Date.parse("2026-01-01T00:12:20.000Z"), expectedTimestamp };
    expect(
      heard()
        .filter(([name], at, all) => name !== all[at - 1]?.[0])
        .slice(2),
    ).toEqual([
      ["cron:prematureTimer", early],
      ["cron:overdueTimer", late],
      ["cron:schedule", eleven],
      ["cron:scheduled", eleven],
      ["cron:schedule", twelve],
      ["cron:scheduled", twelve],
    ]);
    expect(await runs(db)).toEqual(["a 00:11", "b 00:11", "a 00:12"]);
    const rows = await knownCrontabs(db);
    expect(rows.map(({ last_execution }) => last_execution)).toEqual([new Date(minute(12)), new Date(minute(11))]);
  });

  test("parsed items may change while they are scheduled", async () => {
    const db = await fresh();
    const setClock = stopClock("2026-01-01T00:10:59.990Z");
    const { parseCrontab } = await loadLibrary(isOurs);
    const parsedCronItems = parseCrontab("* * * * * a");
    const { started, count } = await startCron(isOurs, db, { parsedCronItems });
    await started();
    parsedCronItems.splice(0, 1, ...parseCrontab("* * * * * b"));
    setClock("2026-01-01T00:11:10.000Z");
    await until(() => count("cron:scheduled") === 1);
    expect(await runs(db)).toEqual(["b 00:11"]);
  });

  test("a task hears of its run", async () => {
    const db = await fresh();
    stopClock(start);
    await know(db, "a", "2025-01-01T00:00:00Z");
    const jobs: [unknown, Job][] = [];
    await startCron(isOurs, db, {
      crontab: "10 * * * * a ?fill=5m {n: 1}",
      taskList: { a: (payload, { job }) => void jobs.push([payload, job]) },
    });
    await until(() => jobs.length === 1);
    expect(jobs[0]![0]).toEqual({ n: 1, _cron: { ts: minute(10), backfilled: true } });
    expect(jobs[0]![1]).toMatchObject({ task_identifier: "a", attempts: 1, run_at: new Date(minute(10)) });
  });
});
