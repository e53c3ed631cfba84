import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { run } from "../../src/runner/run.ts";
import { freshDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { until } from "../support/wait.ts";
import { heldTask, never, startPool, startWorker } from "../worker/kit.ts";

type WorkerPlugin = NonNullable<GraphileConfig.Plugin["worker"]>;
const plugin = (worker: WorkerPlugin): GraphileConfig.Preset => ({
  plugins: [{ name: "test-plugin", version: "0.0.0", worker }],
});

test("hooks are called in the order of a runner's life, with what they need", async () => {
  const db = await freshDatabase({ migrated: false });
  const folder = await mkdtemp(join(tmpdir(), "hathi-plugins-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "t.mjs"), "export default () => undefined;");
  const calls: string[] = [];
  const scratchpads = new Set<unknown>();
  const migration =
    (name: string) =>
    async (
      ctx: { workerSchema: string },
      event: { client: { query(text: string): Promise<unknown> }; postgresVersion: number; scratchpad: object },
    ) => {
      calls.push(name);
      expect(ctx.workerSchema).toBe("graphile_worker");
      expect(event.postgresVersion).toBeGreaterThanOrEqual(120_000);
      scratchpads.add(event.scratchpad);
      await event.client.query("select 1");
    };
  const { logger } = rememberingLogger();
  const runner = await run({
    connectionString: db.url,
    logger,
    noHandleSignals: true,
    pollInterval: never,
    concurrency: 2,
    taskDirectory: folder,
    preset: plugin({
      hooks: {
        init: (ctx) => {
          calls.push("init");
          expect(ctx.escapedWorkerSchema).toBe('"graphile_worker"');
        },
        prebootstrap: migration("prebootstrap"),
        postbootstrap: migration("postbootstrap"),
        premigrate: migration("premigrate"),
        postmigrate: migration("postmigrate"),
        loadTaskFromFiles: (_ctx, event) => {
          calls.push(`load ${event.taskIdentifier} ${event.fileDetailsList.map(({ extension }) => extension).join()}`);
        },
        startWorker: async (ctx, { worker, flagsToSkip, tasks, withPgClient }) => {
          calls.push("startWorker");
          expect(ctx.version).toBeTypeOf("string");
          expect(worker.workerId).toMatch(/^worker-/);
          expect(flagsToSkip).toBeNull();
          expect(Object.keys(tasks)).toEqual(["t"]);
          await withPgClient((client) => client.query("select 1"));
        },
        stopWorker: async (_ctx, { worker, withPgClient }) => {
          calls.push("stopWorker");
          expect(worker.getActiveJob()).toBeNull();
          await withPgClient((client) => client.query("select 1"));
        },
      },
    }),
  });
  await until(() => calls.filter((name) => name === "startWorker").length === 2);
  await runner.stop();
  expect(calls).toEqual([
    "init",
    "prebootstrap",
    "postbootstrap",
    "premigrate",
    "postmigrate",
    "load t .mjs",
    "startWorker",
    "startWorker",
    "stopWorker",
    "stopWorker",
  ]);
  expect(scratchpads.size).toBe(1);
});

test("startWorker may change the flags that the first claim skips", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('t', flags => array['a']), graphile_worker.add_job('t')");
  const { nth, pool, completed, of } = await startWorker(
    db,
    { t: () => undefined },
    {
      forbiddenFlags: () => null,
      useNotifications: false,
      preset: plugin({
        hooks: {
          startWorker: (_ctx, event) => {
            event.flagsToSkip = ["a"];
          },
        },
      }),
    },
  );
  const { job } = await nth("job:start");
  expect(job.flags).toBeNull();
  pool().nudge(1);
  await completed(2);
  expect(of("job:start")[1]!.job.flags).toEqual({ a: true });
});

test("middleware stands around init, bootstrap, migrate and the graceful shutdown", async () => {
  const db = await freshDatabase({ migrated: false });
  const calls: string[] = [];
  const around =
    (name: string, look: (event: never) => void = () => undefined) =>
    (next: () => unknown, event: never) => {
      calls.push(`before ${name}`);
      look(event);
      const result = next() as Promise<unknown>;
      const done = (value: unknown): unknown => {
        calls.push(`after ${name}`);
        return value;
      };
      // `init` is synchronous, the others are not.
      return typeof result?.then === "function" ? result.then(done) : done(result);
    };
  const { runner, pool } = await startWorker(
    db,
    { t: () => undefined },
    {
      preset: plugin({
        middleware: {
          init: around("init", ({ ctx }: { ctx: object }) => expect(ctx).toHaveProperty("workerSchema")) as never,
          bootstrap: around("bootstrap", ({ client }: { client: object }) =>
            expect(client).toHaveProperty("query"),
          ) as never,
          migrate: around("migrate", ({ postgresVersion }: { postgresVersion: number }) =>
            expect(postgresVersion).toBeGreaterThan(0),
          ) as never,
          poolGracefulShutdown: around(
            "shutdown",
            ({ message, workerPool }: { message: string; workerPool: object }) => {
              expect(message).toBe("bye");
              expect(workerPool).toBe(pool());
            },
          ) as never,
        },
      }),
    },
  );
  await runner.stop("bye");
  expect(calls).toEqual([
    "before init",
    "after init",
    "before bootstrap",
    "after bootstrap",
    "before migrate",
    "after migrate",
    "before shutdown",
    "after shutdown",
  ]);
});

test("middleware around a forceful shutdown sees its message and its result", async () => {
  const db = await freshDatabase();
  const held = heldTask();
  const seen: unknown[] = [];
  const { pool } = startPool(
    db,
    { t: held.task },
    {
      preset: plugin({
        middleware: {
          poolForcefulShutdown: async (next, { message, workerPool }) => {
            const result = await next();
            seen.push(message, workerPool === pool, result.forceFailedJobs.length);
            return result;
          },
        },
      }),
    },
  );
  await db.query("select graphile_worker.add_job('t')");
  await held.begun(1);
  await pool.forcefulShutdown("now");
  expect(seen).toEqual(["now", true, 1]);
});

test("a shutdown middleware that throws does not leave a pool that looks alive", async () => {
  const db = await freshDatabase();
  const { pool, names } = startPool(
    db,
    { t: () => undefined },
    {
      preset: plugin({
        middleware: {
          poolGracefulShutdown: () => {
            throw new Error("plugin trouble");
          },
        },
      }),
    },
  );
  await expect(pool.gracefulShutdown()).rejects.toThrow("plugin trouble");
  await pool.promise;
  expect(names()).toContain("pool:gracefulShutdown:error");
  expect(names()).toContain("pool:forcefulShutdown:complete");
  expect(pool._active).toBe(false);
});

test("hooks that throw: a worker's start is tried again without it, a stop ends all the same", async () => {
  const db = await freshDatabase();
  const { runner, completed, nth, names } = await startWorker(
    db,
    { t: () => undefined },
    {
      preset: plugin({
        hooks: {
          startWorker: () => {
            throw new Error("no start");
          },
          stopWorker: () => {
            throw new Error("no stop");
          },
        },
      }),
    },
  );
  await runner.addJob("t", {});
  expect((await nth("worker:getJob:error")).error).toMatchObject({ message: "no start" });
  await completed(1);
  await runner.stop();
  await runner.promise;
  expect((await nth("pool:gracefulShutdown:workerError")).error).toMatchObject({ message: "no stop" });
  expect(names()).toEqual(expect.arrayContaining(["worker:stop", "pool:gracefulShutdown:complete", "pool:release"]));
});

test("poolWorkerPrematureExit may put a new worker in the place of one that was released", async () => {
  const db = await freshDatabase();
  const exits: string[] = [];
  const { pool, nth, completed } = startPool(
    db,
    { t: () => undefined },
    {
      preset: plugin({
        middleware: {
          poolWorkerPrematureExit: (_next, { worker, replaceWithNewWorker }) => {
            exits.push(worker.workerId);
            replaceWithNewWorker();
          },
        },
      }),
    },
  );
  const first = pool.worker!.workerId;
  await pool.worker!.release();
  await nth("worker:create", 2);
  expect(exits).toEqual([first]);
  expect(pool.worker!.workerId).not.toBe(first);
  await db.query("select graphile_worker.add_job('t')");
  await completed(1);
  expect((await nth("job:start")).worker.workerId).toBe(pool.worker!.workerId);
});
