import { expect, test } from "vitest";
import { run } from "../../src/runner/run.ts";
import { readTaskOptions } from "../../src/task-options.ts";
import { defineTask } from "../../src/tasks/define-task.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";
import { recordEvents, startWorker } from "../worker/kit.ts";
import { obedientTask, utilsOf } from "./kit.ts";

test.each([
  [{ timeot: 1 }, /Unknown task option 'timeot' in x\. Did you mean 'timeout'\?/],
  [
    { timeout: "soon" },
    /'x\.timeout' must be a number of milliseconds from 1 up or a string such as '30s', got 'soon'/,
  ],
  [{ timeout: 0 }, /'x\.timeout' must be/],
  [{ abortGrace: -1 }, /'x\.abortGrace' must be/],
  [{ backoff: "fast" }, /'x\.backoff' must be an object \{ type, delay \} or a function/],
  [
    { backoff: { type: "expo", delay: 1 } },
    /'x\.backoff\.type' must be 'exponential', 'linear' or 'fixed', got 'expo'/,
  ],
  [{ backoff: { type: "fixed" } }, /'x\.backoff\.delay' must be/],
  [{ backoff: { type: "fixed", delay: 1, jiter: 1 } }, /Unknown key 'jiter' in 'x\.backoff'\. Did you mean 'jitter'\?/],
  [{ backoff: { type: "fixed", delay: 1, jitter: 2 } }, /'x\.backoff\.jitter' must be a number from 0 to 1/],
  [{ maxAttempts: 0 }, /'x\.maxAttempts' must be a whole number from 1 to 32767/],
  [{ priority: 99_999 }, /'x\.priority' must be/],
  [{ queueName: "" }, /'x\.queueName' must be/],
  ["30s", /x must be an object of task options/],
])("bad task options are refused: %o", (options, message) => {
  expect(() => readTaskOptions(options, "x")).toThrow(message);
});

test("back-offs are computed as documented", () => {
  const at = (backoff: object, attempts: number[]): number[] =>
    attempts.map(
      (attempt) => readTaskOptions({ backoff }, "x").backoff!(attempt, new Error("x"), {} as never) as number,
    );
  expect(at({ type: "exponential", delay: "1s" }, [1, 2, 3])).toEqual([1_000, 2_000, 4_000]);
  expect(at({ type: "exponential", delay: "1s", maxDelay: "3s" }, [1, 2, 3, 1000])).toEqual([
    1_000, 2_000, 3_000, 3_000,
  ]);
  expect(at({ type: "linear", delay: 10 }, [1, 2, 3])).toEqual([10, 20, 30]);
  expect(at({ type: "fixed", delay: 10 }, [1, 9])).toEqual([10, 10]);
  for (const ms of at(
    { type: "fixed", delay: 100, jitter: 0.5 },
    Array.from({ length: 50 }, () => 1),
  )) {
    expect(ms).toBeGreaterThanOrEqual(50);
    expect(ms).toBeLessThanOrEqual(150);
  }
});

test("unknown keys of a definition are refused", () => {
  expect(() => defineTask({ identifier: "t", run: () => undefined, timeOut: "1s" } as never)).toThrow(
    /Unknown key 'timeOut' in the definition of task 't'\. Did you mean 'timeout'\?/,
  );
});

test("bad options for a task stop a worker before it starts", async () => {
  await expect(
    run({ connectionString: "postgres://nowhere", taskList: {}, taskOptions: { mail: { timeout: "x" } } }),
  ).rejects.toThrow(/'taskOptions\['mail'\]\.timeout' must be/);
});

test("a definition's own options count, and 'taskOptions' is stronger", async () => {
  const db = await freshDatabase();
  const { task, begun } = obedientTask();
  const own = defineTask({ identifier: "own", run: task, timeout: "40ms", abortGrace: "1h", maxAttempts: 3 });
  const overridden = defineTask({ identifier: "overridden", run: task, timeout: "1h" });
  const worker = await startWorker(
    db,
    { own, overridden },
    { taskOptions: { overridden: { timeout: 40, abortGrace: "1h" } }, concurrency: 2 },
  );
  const utils = await utilsOf(db);
  const first = await utils.addJob(own, {});
  const second = await utils.addJob(overridden, {});
  await begun(2);
  await worker.completed(2);
  expect(await db.job(first.id)).toMatchObject({
    max_attempts: 3,
    last_error: expect.stringMatching(/timeout of 40 ms/),
  });
  expect(await db.job(second.id)).toMatchObject({ last_error: expect.stringMatching(/timeout of 40 ms/) });
});

test("a task file's 'options' count, for modules, CommonJS and TypeScript; bad ones are named with their file", async () => {
  const db = await freshDatabase();
  const body = "(payload, helpers) => helpers.abortPromise";
  const project = await makeProject({
    "tasks/module.mjs": `export const options = { timeout: "40ms", abortGrace: "1h" }; export default ${body};`,
    "tasks/common.cjs": `exports.options = { timeout: "40ms", abortGrace: "1h" }; exports.default = ${body};`,
    "tasks/typed.ts": `
      export const options: { timeout: string; abortGrace: string } = { timeout: "40ms", abortGrace: "1h" };
      export default (payload: unknown, helpers: { abortPromise: Promise<never> }) => helpers.abortPromise;`,
    "bad/t.mjs": `export const options = { timout: 1 }; export default ${body};`,
  });
  const recording = recordEvents();
  const options = { connectionString: db.url, noHandleSignals: true, events: recording.events, concurrency: 3 };
  const fileExtensions = [".mjs", ".cjs", ".ts"];
  const runner = await run({
    ...options,
    taskDirectory: project.path("tasks"),
    preset: { worker: { fileExtensions } },
  });
  const jobs = await runner.addJobs(["module", "common", "typed"].map((identifier) => ({ identifier, payload: {} })));
  await recording.completed(3);
  await runner.stop();
  for (const { id } of jobs) {
    expect(await db.job(id)).toMatchObject({ last_error: expect.stringMatching(/timeout of 40 ms/) });
  }
  await expect(run({ ...options, taskDirectory: project.path("bad") })).rejects.toThrow(
    /Unknown task option 'timout' in 'options' of '.*bad.t\.mjs'\. Did you mean 'timeout'\?/,
  );
});

test("options of a task file go before those of its definition, and each file has its own for a function that several export", async () => {
  const db = await freshDatabase();
  const project = await makeProject({
    "shared.mjs": "export default (payload, helpers) => helpers.abortPromise;",
    "tasks/one.mjs": `export { default } from "../shared.mjs"; export const options = { timeout: "41ms", abortGrace: "1h" };`,
    "tasks/two.mjs": `export { default } from "../shared.mjs"; export const options = { timeout: "42ms", abortGrace: "1h" };`,
  });
  const { task } = obedientTask();
  const defined = defineTask({ identifier: "defined", run: task, timeout: "1h", abortGrace: "1h" });
  Object.assign(globalThis, { definedByTest: defined });
  await project.write(
    "tasks/defined.mjs",
    'export default globalThis.definedByTest; export const options = { timeout: "43ms" };',
  );
  const recording = recordEvents();
  const runner = await run({
    connectionString: db.url,
    noHandleSignals: true,
    events: recording.events,
    concurrency: 3,
    taskDirectory: project.path("tasks"),
  });
  const names = ["one", "two", "defined"];
  const jobs = await runner.addJobs(names.map((identifier) => ({ identifier, payload: {} })));
  await recording.completed(3);
  await runner.stop();
  const errors = await Promise.all(jobs.map(async ({ id }) => (await db.job(id))?.last_error));
  expect(errors).toEqual([41, 42, 43].map((ms) => expect.stringContaining(`timeout of ${ms} ms`)));
});

test("'taskOptions' can stand in a preset, and what it says about adding goes before a definition", async () => {
  const db = await freshDatabase();
  const { task } = obedientTask();
  const own = defineTask({ identifier: "own", run: task, maxAttempts: 3, priority: 1, queueName: "defined" });
  const preset = {
    worker: {
      taskOptions: { own: { timeout: "40ms", abortGrace: "1h", maxAttempts: 7, queueName: "preset" } },
    },
  };
  const recording = recordEvents();
  const runner = await run({
    connectionString: db.url,
    noHandleSignals: true,
    events: recording.events,
    taskList: { own },
    preset,
  });
  const { id } = await runner.addJob(own, {});
  const [other] = await runner.addJobs([{ identifier: own, payload: {}, maxAttempts: 2 }]);
  await recording.completed(2);
  await runner.stop();
  const last_error = expect.stringContaining("timeout of 40 ms");
  expect(await db.job(id)).toMatchObject({ max_attempts: 7, priority: 1, queue_name: "preset", last_error });
  expect(await db.job(other!.id)).toMatchObject({ max_attempts: 2, priority: 1, queue_name: "preset" });
});

test("a program gets SIGTERM when its job is told to stop, and SIGKILL after its grace", async () => {
  const db = await freshDatabase();
  const project = await makeProject();
  await project.write("tasks/polite.sh", "#!/bin/sh\ntrap 'echo bye; exit 3' TERM\nwhile :; do sleep 0.05; done\n", {
    executable: true,
  });
  await project.write("tasks/deaf.sh", "#!/bin/sh\ntrap 'echo no' TERM\nwhile :; do sleep 0.05; done\n", {
    executable: true,
  });
  const recording = recordEvents();
  const utils = await utilsOf(db);
  const { logger, lines } = rememberingLogger();
  const runner = await run({
    connectionString: db.url,
    noHandleSignals: true,
    events: recording.events,
    concurrency: 2,
    logger,
    taskDirectory: project.path("tasks"),
    taskOptions: { polite: { abortGrace: "1h" }, deaf: { abortGrace: "2s" } },
  });
  const polite = await utils.addJob("polite", {});
  const deaf = await utils.addJob("deaf", {});
  await recording.nth("job:start", 2);
  await utils.cancelJobs([polite.id, deaf.id]);
  await recording.completed(2);
  await runner.stop();
  await until(async () => (await db.jobs()).length === 0);
  expect(recording.of("job:cancelled")).toHaveLength(2);
  // Both had the time to answer the first signal; the second one cannot be answered.
  const said = lines.map(({ message }) => message);
  expect([said.includes("bye"), said.includes("no")]).toEqual([true, true]);
});
