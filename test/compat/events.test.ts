import { expect, onTestFinished, test } from "vitest";
import { type TestDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { bothWays } from "./both-ways.ts";
import { held, loadLibrary, observed } from "./library.ts";

const ok = (): void => undefined;
const bad = (): never => {
  throw new Error("no");
};
const gone = (db: TestDatabase): Promise<unknown> => until(async () => (await db.jobs()).length === 0);

/** How often one asks for work is each library's own business. */
const withoutLooks = (names: string[]): string[] => names.filter((name) => !name.startsWith("worker:getJob"));

bothWays(({ fresh, isOurs }) => {
  test("what is heard before run() resolves, while jobs run, and when the runner stops", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard, count } = observed(library);
    const task = held();
    const runner = await library.run({
      ...options,
      connectionString: db.url,
      concurrency: 3,
      taskList: { job1: task.task },
    });
    expect(runner.events).toEqual(options.events);
    expect(count("pool:create")).toBe(1);
    expect(count("pool:listen:connecting")).toBe(1);
    expect(count("worker:create")).toBe(3);
    let isFinished = false;
    void runner.promise.then(() => {
      isFinished = true;
    });
    for (let id = 0; id < 5; id++) {
      await db.query("select graphile_worker.add_job('job1', json_build_object('id', $1::int), 'queue' || $1)", [id]);
    }
    await until(() => task.jobs.length === 3);
    expect(count("job:start")).toBe(3);
    for (let id = 0; id < 5; id++) {
      await until(() => task.releases[id]);
      task.releases[id]!();
      await until(() => count("job:complete") === id + 1);
      expect(count("job:success")).toBe(id + 1);
    }
    expect(isFinished).toBe(false);
    await runner.stop();
    await until(() => isFinished);
    for (const [name, times] of [
      ["stop", 1],
      ["job:start", 5],
      ["worker:release", 3],
      ["worker:stop", 3],
      ["pool:gracefulShutdown", 1],
      ["pool:gracefulShutdown:complete", 1],
      ["pool:release", 1],
      ["pool:listen:release", 1],
    ] as const) {
      expect(count(name), name).toBe(times);
    }
    for (const { name, payload } of heard) expect(payload, name).toHaveProperty("ctx.workerSchema", "graphile_worker");
  });

  test("the life of one pool with one job, event by event", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard, count } = observed(library);
    await db.query("select graphile_worker.add_job('ok')");
    const pool = library.runTaskList(options, { ok }, testPool(db.url));
    await until(() => count("job:complete") === 1 && count("pool:listen:success") === 1);
    await gone(db);
    await until(() => count("worker:getJob:empty") > 0);
    await pool.gracefulShutdown("over");
    await pool.promise;
    const names = withoutLooks(heard.map(({ name }) => name));
    const listening = ["pool:listen:success", "pool:listen:release", "pool:listen:notification"];
    expect(names.filter((name) => !listening.includes(name))).toEqual([
      "pool:create",
      "worker:create",
      "pool:listen:connecting",
      "job:start",
      "job:success",
      "job:complete",
      "pool:gracefulShutdown",
      "worker:release",
      "worker:stop",
      "pool:gracefulShutdown:complete",
      "pool:release",
    ]);
    expect(heard.find(({ name }) => name === "pool:gracefulShutdown")!.payload).toMatchObject({ message: "over" });
  });

  test("runOnce, event by event", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard } = observed(library);
    await db.query("select graphile_worker.add_job('ok'), graphile_worker.add_job('bad', max_attempts => 1)");
    await library.runOnce({ ...options, connectionString: db.url, taskList: { ok, bad } });
    const names = withoutLooks(heard.map(({ name }) => name));
    const ends = ["worker:release", "worker:stop"];
    expect(names.filter((name) => !ends.includes(name) && name !== "job:complete")).toEqual([
      "pool:create",
      "worker:create",
      "job:start",
      "job:success",
      "job:start",
      "job:error",
      "job:failed",
      "pool:gracefulShutdown",
      "pool:gracefulShutdown:complete",
      "pool:release",
    ]);
    expect(names.filter((name) => ends.includes(name))).toEqual(ends);
    expect(names.filter((name) => name === "job:complete")).toHaveLength(2);
    expect(heard.find(({ name }) => name === "pool:gracefulShutdown")!.payload.message).toBe(
      "'Run once' mode processed all available jobs and is now exiting",
    );
  });

  test("what each event carries", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard, count } = observed(library);
    await db.query("select graphile_worker.add_job('ok'), graphile_worker.add_job('bad', max_attempts => 1)");
    const runner = await library.run({ ...options, connectionString: db.url, taskList: { ok, bad } });
    await until(() => count("job:complete") === 2);
    await until(() => count("pool:listen:success") === 1);
    await runner.stop();
    const keys = Object.fromEntries(
      heard.map(({ name, payload }) => [name, Object.keys(payload).filter((key) => key !== "ctx")]),
    );
    const expected = {
      "pool:create": ["workerPool"],
      "worker:create": ["worker", "tasks"],
      "pool:listen:connecting": ["workerPool", "attempts"],
      "pool:listen:success": ["workerPool", "client"],
      "pool:listen:release": ["workerPool", "client"],
      "worker:getJob:start": ["worker"],
      "worker:getJob:empty": ["worker"],
      "job:start": ["worker", "job"],
      "job:success": ["worker", "job"],
      "job:error": ["worker", "job", "error"],
      "job:failed": ["worker", "job", "error"],
      "job:complete": ["worker", "job", "error"],
      stop: [],
      "pool:gracefulShutdown": ["pool", "workerPool", "message"],
      "worker:release": ["worker"],
      "worker:stop": ["worker"],
      "pool:gracefulShutdown:complete": ["pool", "workerPool"],
      "pool:release": ["pool", "workerPool"],
    };
    // Ours may say more; what the original says is all there.
    for (const [name, names] of Object.entries(expected)) {
      expect(keys[name], name).toEqual(expect.arrayContaining(names));
    }
  });

  test("the modes of a local queue", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard, count } = observed(library);
    await db.query("select graphile_worker.add_job('ok') from generate_series(1, 3)");
    const pool = library.runTaskList(
      { ...options, preset: { worker: { localQueue: { size: 10 } } } },
      { ok },
      testPool(db.url),
    );
    await until(() => count("job:complete") === 3 && count("localQueue:getJobs:complete") >= 2);
    await pool.gracefulShutdown();
    const modes = heard
      .filter(({ name }) => name === "localQueue:setMode")
      .map(({ payload }) => `${String(payload.oldMode)} > ${String(payload.newMode)}`);
    expect(modes).toEqual(["STARTING > POLLING", "POLLING > WAITING", "WAITING > POLLING", "POLLING > RELEASED"]);
    expect(count("localQueue:init")).toBe(1);
  });

  test("a forceful shutdown overtakes a graceful one", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard } = observed(library);
    const task = held({ forGood: true }); // the original would write to the ended pool
    await db.query("select graphile_worker.add_job('long')");
    const pool = library.runTaskList(options, { long: task.task }, testPool(db.url));
    const poolEnd = pool.promise.then(
      () => undefined,
      (error: Error) => error.message,
    );
    await until(() => task.jobs.length === 1);
    const graceful = pool.gracefulShutdown("g").then(
      () => undefined,
      (error: Error) => error.message,
    );
    const { forceFailedJobs } = await pool.forcefulShutdown("f");
    expect(forceFailedJobs.map(({ id }) => id)).toEqual([task.jobs[0]!.id]);
    expect(await graceful).toBe("forcefulShutdown was initiated whilst gracefulShutdown was still executing.");
    expect(await poolEnd).toContain(task.jobs[0]!.id);
    expect(await db.jobs()).toMatchObject([{ attempts: 1, last_error: "f", locked_by: null }]);
    const names = heard.map(({ name }) => name);
    for (const name of [
      "pool:gracefulShutdown",
      "pool:gracefulShutdown:error",
      "pool:forcefulShutdown",
      "pool:forcefulShutdown:complete",
      "pool:release",
    ]) {
      expect(
        names.filter((other) => other === name),
        name,
      ).toHaveLength(1);
    }
    expect(names).not.toContain("pool:gracefulShutdown:complete");
  });

  test("locks that are four hours old are swept", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard, count } = observed(library);
    await db.query("select graphile_worker.add_job('other'), graphile_worker.add_job('other')");
    await db.query(
      "update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now() - interval '3 hours 59 minutes'",
    );
    await db.query(
      "update graphile_worker._private_jobs set locked_at = now() - interval '4 hours 1 second' where id = 1",
    );
    const pool = library.runTaskList(
      { ...options, minResetLockedInterval: 1, maxResetLockedInterval: 1 },
      { ok },
      testPool(db.url),
    );
    onTestFinished(() => pool.gracefulShutdown());
    await until(() => count("resetLocked:success") > 0);
    expect(heard.find(({ name }) => name === "resetLocked:success")!.payload).toMatchObject({ delay: 1 });
    expect((await db.jobs()).map(({ locked_by }) => locked_by)).toEqual([null, "dead"]);
  });
});
