import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { RunnerOptions } from "../../src/index.ts";
import { freshDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { bothWays } from "./both-ways.ts";
import { held, loadLibrary, observed } from "./library.ts";

const never = Number.POSITIVE_INFINITY;

/** Values that the types do not offer, but that both libraries take from JavaScript. */
const lenient: [what: string, options: object][] = [
  [
    "null for whatever may be left out",
    {
      schema: null,
      concurrency: null,
      pollInterval: null,
      maxPoolSize: null,
      useNodeTime: null,
      taskDirectory: null,
      crontabFile: null,
      crontab: null,
      parsedCronItems: null,
      forbiddenFlags: null,
      gracefulShutdownAbortTimeout: null,
      preset: null,
    },
  ],
  ["numbers as strings", { concurrency: "2", maxPoolSize: "5", pollInterval: "500" }],
  [
    "a refetch delay that no new job ends",
    {
      preset: {
        worker: { localQueue: { size: 5, refetchDelay: { durationMs: 10, maxAbortThreshold: never } } },
      },
    },
  ],
  [
    "a local queue that is off, with a refetch delay that is too long for one",
    { preset: { worker: { localQueue: { size: -1, refetchDelay: { durationMs: 60_000 } } } } },
  ],
  ["a local queue for less than one job", { preset: { worker: { localQueue: { size: 0.5 } } } }],
  ["a local queue whose jobs never expire", { preset: { worker: { localQueue: { size: 5, ttl: never } } } }],
  ["names of queues that are looked up at once", { preset: { worker: { getQueueNameBatchDelay: -1 } } }],
  [
    "a task list with exports of a module that are no tasks",
    { taskList: { t: () => undefined, limit: 5, name: "x", off: undefined } },
  ],
  ["a graceful shutdown without an abort", { gracefulShutdownAbortTimeout: never }],
];

bothWays(({ fresh, isOurs }) => {
  test.each(lenient)("%s", async (_, given) => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, count } = observed(library);
    const runner = await library.run({
      connectionString: db.url,
      ...options,
      taskList: { t: () => undefined },
      ...(given as RunnerOptions),
    });
    try {
      await runner.addJob("t", {});
      await until(() => count("job:complete") === 1);
      const size = Number((given as RunnerOptions).preset?.worker?.localQueue?.size ?? -1);
      expect(count("localQueue:init")).toBe(size >= 1 ? 1 : 0);
    } finally {
      await runner.stop();
    }
  });

  test("an abort that never comes", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, count } = observed(library);
    const signals: AbortSignal[] = [];
    const { task, releases } = held();
    const runner = await library.run({
      connectionString: db.url,
      ...options,
      gracefulShutdownAbortTimeout: never,
      taskList: {
        t: (payload, helpers) => {
          signals.push(helpers.abortSignal);
          return task(payload, helpers);
        },
      },
    });
    await runner.addJob("t", {});
    await until(() => releases.length === 1);
    const stopped = runner.stop();
    await until(() => count("pool:gracefulShutdown") === 1);
    // Timers of the same length fire in the order in which they were set, and the shutdown's would be of 1 ms.
    await new Promise((resolve) => setTimeout(resolve, 2));
    // The original hands Infinity to a timer, which fires at once.
    expect(signals[0]?.aborted).toBe(!isOurs);
    releases[0]!();
    await stopped;
  });
});

test("extensions without their dots find the files of tasks", async () => {
  const { runOnce } = await loadLibrary(true);
  const { options, count } = observed(await loadLibrary(true));
  const db = await freshDatabase();
  const taskDirectory = await mkdtemp(join(tmpdir(), "hathi-tasks-"));
  onTestFinished(() => rm(taskDirectory, { recursive: true }));
  await writeFile(join(taskDirectory, "t.mjs"), "export default () => undefined;");
  await db.query("select graphile_worker.add_job('t')");
  await runOnce({
    connectionString: db.url,
    ...options,
    taskDirectory,
    preset: { worker: { fileExtensions: ["mjs"] } },
  });
  expect(count("job:success")).toBe(1);
});
