import { EventEmitter } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import type { WorkerEvents } from "../../src/events.ts";
import { Logger } from "../../src/logger.ts";
import { quickly } from "../recovery/kit.ts";
import { freshDatabase, type JobRow, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { eventNames, startWorker } from "../worker/kit.ts";

/** Nothing is to be taken for dead here, however busy the machine is. */
const recovery = { ...quickly, sweepThreshold: 60_000, crashGrace: 30_000 };
const taskList = {
  good: () => undefined,
  bad: () => {
    throw new Error("no");
  },
};

function done(db: TestDatabase): Promise<unknown> {
  const isDone = (job: JobRow): boolean => job.attempts > 0 && job.locked_by === null;
  return until(async () => (await db.jobs()).every((job) => job.task_identifier === "tick" || isDone(job)), {
    what: "no job waits or runs",
  });
}

/** All that can be listened to, that of the library's own parts included. */
const allNames = [...eventNames, "claim:complete", "claim:error", "settle:complete"];

test.each([
  [
    "throw",
    (): never => {
      throw new Error("broken observer");
    },
  ],
  ["reject", () => Promise.reject(new Error("broken observer"))],
])(
  "a logger and listeners that %s everywhere stop nothing, not even in an outage",
  async (_how, fail) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    for (const name of ["unhandledRejection", "uncaughtException"]) {
      process.on(name, note);
      onTestFinished(() => void process.off(name, note));
    }
    const db = await freshDatabase();
    const proxy = await startProxy(db.url);
    const said: string[] = [];
    const logger = new Logger(() => (_level, message) => {
      said.push(message);
      return fail();
    });
    const events = new EventEmitter();
    for (const name of allNames) events.on(name, fail as () => void);
    let ticks = 0;
    const ticked = async (): Promise<void> => {
      const before = ticks;
      await until(() => ticks > before, { what: "cron has ticked" });
    };
    const { runner } = await startWorker(
      db,
      { ...taskList, tick: () => void ticks++ },
      {
        connectionString: proxy.url,
        concurrency: 3,
        crontab: "* * * * * tick ?seconds=*",
        events: events as unknown as WorkerEvents,
        history: "outcomes",
        logger,
        recovery,
      },
    );
    await db.query("select graphile_worker.add_job('good'), graphile_worker.add_job('bad')");
    await done(db);
    await ticked();
    // First its connections are cut, then the server cannot be reached.
    await db.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await db.query("select graphile_worker.add_job('good'), graphile_worker.add_job('bad')");
    await done(db);
    await ticked();
    proxy.sever();
    await until(() => said.some((message) => message.startsWith("Lost the database")));
    proxy.restore();
    await until(() => said.some((message) => message.startsWith("The database answers again")));
    await db.query("select graphile_worker.add_job('good'), graphile_worker.add_job('bad')");
    await done(db);
    await ticked();
    await runner.stop();
    const left = await db.jobs();
    expect(left.map(({ task_identifier }) => task_identifier).filter((name) => name !== "tick")).toEqual([
      "bad",
      "bad",
      "bad",
    ]);
    expect(said).toContain("A listener of 'job:start' failed; this changes nothing else: Error: broken observer");
    expect(unhandled).toEqual([]);
  },
  120_000,
);

test("an outage is one line when it begins and one when it ends, whatever notices it", async () => {
  const db = await freshDatabase();
  const proxy = await startProxy(db.url);
  const { logger, lines } = rememberingLogger();
  const worker = await startWorker(db, taskList, {
    connectionString: proxy.url,
    concurrency: 4,
    pollInterval: 100,
    crontab: "* * * * * good ?seconds=*",
    logger,
    recovery,
  });
  await worker.nth("pool:listen:success");
  await worker.completed(1);
  const told = (): string[] => lines.filter(({ level }) => level !== "debug").map(({ message }) => message);
  const before = told().length;
  proxy.sever();
  await until(() => told().some((message) => message.startsWith("Lost the database")));
  // Long enough for every part to have noticed: each of them has tried several times.
  await worker.nth("pool:listen:error", 3);
  await worker.nth("worker:getJob:error", 12);
  proxy.restore();
  await until(() => told().some((message) => message.startsWith("The database answers again")));
  const news = told()
    .slice(before)
    .filter((message) => !/^(Completed task|Worker connected)/.test(message));
  expect(news).toEqual([
    expect.stringMatching(/^Lost the database \(.*\); trying again/),
    expect.stringMatching(/^The database answers again after [\d.]+ s\.$/),
  ]);
}, 120_000);
