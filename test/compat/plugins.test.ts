import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import type { WorkerEvents } from "../../src/index.ts";
import { testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { bothWays } from "./both-ways.ts";
import { held, loadLibrary, observed } from "./library.ts";

type WorkerPlugin = NonNullable<GraphileConfig.Plugin["worker"]>;
const plugin = (worker: WorkerPlugin): GraphileConfig.Preset => ({
  plugins: [{ name: "test-plugin", version: "0.0.0", worker }],
});
const ok = (): void => undefined;

bothWays(({ fresh, isOurs }) => {
  test("an emitter that has `emit` and nothing else is told everything", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const names: string[] = [];
    const emitter = { emit: (name: string) => names.push(name) > 0 };
    await db.query("select graphile_worker.add_job('ok')");
    const events = emitter as unknown as WorkerEvents;
    await library.runOnce({ ...options, events, connectionString: db.url, taskList: { ok } });
    expect(names.filter((name) => name.startsWith("job:"))).toEqual(["job:start", "job:success", "job:complete"]);
  });

  test("a subclass sees every event in its own emit, listeners or not, and an emitter may be patched at any time", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const seen: string[] = [];
    class Recorder extends EventEmitter {
      override emit(name: string | symbol, ...args: unknown[]): boolean {
        seen.push(String(name));
        return super.emit(name, ...args);
      }
    }
    const recorder = new Recorder();
    const payloads: unknown[] = [];
    recorder.on("job:start", (payload) => payloads.push(payload));
    await db.query("select graphile_worker.add_job('ok')");
    const given = { ...options, connectionString: db.url, taskList: { ok } };
    await library.runOnce({ ...given, events: recorder as unknown as WorkerEvents });
    expect(seen).toEqual(expect.arrayContaining(["pool:create", "job:start", "job:success", "job:complete"]));
    expect(payloads).toMatchObject([{ job: { task_identifier: "ok" }, ctx: { workerSchema: "graphile_worker" } }]);

    const plain = new EventEmitter();
    const patched: string[] = [];
    plain.once("pool:create", () => {
      plain.emit = (name, ...args) => {
        patched.push(String(name));
        return EventEmitter.prototype.emit.call(plain, name, ...args);
      };
    });
    await db.query("select graphile_worker.add_job('ok')");
    await library.runOnce({ ...given, events: plain as unknown as WorkerEvents });
    expect(patched).toEqual(expect.arrayContaining(["worker:create", "job:start", "job:complete", "pool:release"]));
  });

  test.each(["forcefulShutdown", "kill"] as const)("stopWorker hooks run on %s, once for each worker", async (how) => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const task = held({ forGood: true });
    const started: string[] = [];
    const stopped: string[] = [];
    const preset = plugin({
      hooks: {
        startWorker: (_ctx, { worker }) => void started.push(worker.workerId),
        stopWorker: async (_ctx, { worker, withPgClient }) => {
          // The original closes its connections meanwhile, if it is killed.
          if (isOurs) await withPgClient(async (client) => void (await client.query("select 1")));
          stopped.push(worker.workerId);
        },
      },
    });
    const given = { ...options, preset, concurrency: 3 };
    if (how === "kill") {
      const runner = await library.run({ ...given, connectionString: db.url, taskList: { hold: task.task } });
      await until(() => started.length === 3);
      await runner.kill("enough");
    } else {
      await db.query("select graphile_worker.add_job('hold')");
      const pool = library.runTaskList(given, { hold: task.task }, testPool(db.url));
      pool.promise.catch(() => undefined);
      await until(() => task.jobs.length === 1 && started.length === 3);
      await pool.forcefulShutdown("enough");
    }
    await until(() => stopped.length === 3);
    expect(stopped.toSorted()).toEqual(started.toSorted());
  });

  test.each(["stop", "runOnce"] as const)(
    "on %s a worker is released, its stopWorker hook runs, and then it stops",
    async (how) => {
      const db = await fresh();
      const library = await loadLibrary(isOurs);
      const { options } = observed(library);
      const seen: { id: string; what: string }[] = [];
      const events = new EventEmitter();
      for (const what of ["worker:release", "worker:stop"]) {
        events.on(what, ({ worker }) => seen.push({ id: worker.workerId, what }));
      }
      const preset = plugin({
        hooks: {
          startWorker: (_ctx, { worker }) => void seen.push({ id: worker.workerId, what: "startWorker" }),
          stopWorker: async (_ctx, { worker, withPgClient }) => {
            await withPgClient(async (client) => void (await client.query("select 1")));
            seen.push({ id: worker.workerId, what: "stopWorker" });
          },
        },
      });
      const given = { ...options, preset, events: events as unknown as WorkerEvents, concurrency: 2 };
      const all = { ...given, connectionString: db.url, taskList: { ok } };
      await db.query("select graphile_worker.add_job('ok')");
      if (how === "runOnce") await library.runOnce(all);
      else {
        const runner = await library.run(all);
        await until(async () => (await db.query("select from graphile_worker._private_jobs")).length === 0);
        await until(() => seen.length === 2);
        await runner.stop();
      }
      const ids = [...new Set(seen.map(({ id }) => id))];
      expect(ids).toHaveLength(2);
      for (const id of ids) {
        const whats = seen.filter((each) => each.id === id).map(({ what }) => what);
        expect(whats).toEqual(["startWorker", "worker:release", "stopWorker", "worker:stop"]);
      }
    },
  );

  test("migration and bootstrap hooks find the context in their event, too", async () => {
    const db = await fresh();
    await db.query("drop schema graphile_worker cascade");
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const seen: [string, boolean, string][] = [];
    const look = (name: string) => (ctx: object, event: GraphileWorker.MigrateEvent) =>
      void seen.push([name, event.ctx === ctx, event.ctx.workerSchema]);
    const preset = plugin({
      hooks: {
        prebootstrap: look("prebootstrap"),
        postbootstrap: look("postbootstrap"),
        premigrate: look("premigrate"),
        postmigrate: look("postmigrate"),
      },
    });
    await library.runMigrations({ ...options, preset, connectionString: db.url });
    expect(seen).toEqual(
      ["prebootstrap", "postbootstrap", "premigrate", "postmigrate"].map((name) => [name, true, "graphile_worker"]),
    );
  });

  test("init hooks run inside the init middleware, which has the whole context afterwards", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options } = observed(library);
    const calls: string[] = [];
    const contexts: object[] = [];
    const preset = plugin({
      middleware: {
        init(next: () => unknown, event: GraphileWorker.InitEvent) {
          calls.push("before");
          const compiled = next();
          contexts.push(event.ctx);
          calls.push("after");
          return compiled;
        },
      } as unknown as NonNullable<WorkerPlugin["middleware"]>,
      hooks: { init: () => void calls.push("init") },
    });
    const given = { ...options, preset, connectionString: db.url };
    await (await library.makeWorkerUtils(given)).release();
    expect(calls).toEqual(["before", "init", "after"]);
    expect(contexts).toMatchObject([{ version: expect.any(String), maxMigrationNumber: expect.any(Number) }]);
    expect(contexts[0]).toHaveProperty("_rawOptions", given);
  });

  test("events and hooks hand on the options as they were given", async () => {
    const db = await fresh();
    const library = await loadLibrary(isOurs);
    const { options, heard } = observed(library);
    const given = { ...options, connectionString: db.url, taskList: { ok } };
    await library.runOnce(given);
    const { payload } = heard.find(({ name }) => name === "pool:create")!;
    expect((payload.ctx as { _rawOptions?: object })._rawOptions).toBe(given);
  });

  test.each([[{}], [{ localQueue: { size: 2 }, completeJobBatchDelay: 0 }]])(
    "the settings for batches are in the resolved preset if somebody has set them: %j",
    async (worker) => {
      const db = await fresh();
      const library = await loadLibrary(isOurs);
      const { options, heard } = observed(library);
      await library.runOnce({ ...options, connectionString: db.url, taskList: { ok }, preset: { worker } });
      const { payload } = heard.find(({ name }) => name === "pool:create")!;
      const { resolvedPreset } = payload.ctx as { resolvedPreset: { worker: Record<string, unknown> } };
      const names = ["localQueue", "completeJobBatchDelay", "failJobBatchDelay", "getQueueNameBatchDelay"];
      const found = names
        .filter((name) => name in resolvedPreset.worker)
        .map((name) => [name, resolvedPreset.worker[name]]);
      expect(Object.fromEntries(found)).toEqual(worker);
    },
  );
});
