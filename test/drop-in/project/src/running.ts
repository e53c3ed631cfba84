import { EventEmitter } from "node:events";
import { readFile } from "node:fs/promises";
import { parseCrontab, type RunnerOptions, run, runOnce, type WorkerEvents, type WorkerUtils } from "graphile-worker";
import preset from "./graphile.config.js";
import "./payloads.js";
import { connectionString, here, logger, pool, shape } from "./surroundings.js";
import { watchJobs } from "./watching.js";

export async function runAllOnce(utils: WorkerUtils): Promise<object> {
  const events: WorkerEvents = new EventEmitter();
  const watched = watchJobs(events);
  const options: RunnerOptions = {
    connectionString,
    preset,
    logger,
    events,
    taskDirectory: here("tasks"),
    crontabFile: here("crontab"),
  };
  await runOnce({ ...options, forbiddenFlags: ["mail"] });
  const withoutFlags = watched.take();
  await runOnce(options);
  const withFlags = watched.take();
  // What failed is due again later: now.
  const { rows } = await pool.query<{ id: string }>("select id from graphile_worker.jobs where attempts = 1");
  await utils.rescheduleJobs(
    rows.map(({ id }) => id),
    { runAt: new Date(0) },
  );
  await runOnce({ ...options, concurrency: 2 });
  return { withoutFlags, withFlags, again: watched.take() };
}

export async function runForAWhile(): Promise<object> {
  // Known for two days, so that what 'fill' asks for is added at the start.
  await pool.query("insert into graphile_worker._private_known_crontabs values ('digest', now() - interval '2 days')");
  const events: WorkerEvents = new EventEmitter();
  const watched = watchJobs(events);
  const others = new Map<string, number>();
  for (const name of [
    "pool:create",
    "worker:create",
    "pool:listen:success",
    "pool:release",
    "cron:starting",
    "cron:started",
    "cron:backfill",
    "worker:release",
    "worker:stop",
    "stop",
    "pool:gracefulShutdown",
    "pool:gracefulShutdown:complete",
  ] as const) {
    events.on(name, (event: object) => {
      const keys = Object.keys(event).toSorted().join();
      others.set(`${name} ${keys}`, (others.get(`${name} ${keys}`) ?? 0) + 1);
    });
  }
  const isDone = new Promise<void>((resolve) => {
    const done = new Set<string>();
    events.on("job:complete", ({ job, error }) => {
      if (error === null) done.add(job.task_identifier);
      if (done.has("users/digest") && done.has("flaky")) resolve();
    });
  });
  // Its jobs may be done before it listens, and events and log tell of both.
  const listens = new Promise<void>((resolve) => events.once("pool:listen:success", () => resolve()));
  const runner = await run({
    connectionString,
    preset,
    logger,
    events,
    concurrency: 2,
    noHandleSignals: true,
    taskDirectory: here("tasks"),
    parsedCronItems: parseCrontab(await readFile(here("crontab"), "utf8")),
  });
  const job = await runner.addJob("flaky", { failures: 0 }, { queueName: "runner" });
  await Promise.all([isDone, listens]);
  await runner.stop();
  await runner.promise;
  const secondStop = await runner.stop().then(
    () => "accepted",
    () => "refused",
  );
  return {
    job: shape(job),
    jobs: watched.take(),
    others: [...others].toSorted(),
    secondStop,
    isSame: runner.events === events,
  };
}
