import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { builtLibrary } from "../support/built-library.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { startProcess, type TestProcess } from "../support/process.ts";
import { until } from "../support/wait.ts";
import { startPool } from "../worker/kit.ts";

let library = "";
beforeAll(() => {
  library = builtLibrary();
});

/** A process in the middle of a job. */
async function startHolding(mode = ""): Promise<{ db: TestDatabase; worker: TestProcess }> {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('hold')");
  const worker = startProcess("../runner/signals-process.mjs", [library, db.url, mode]);
  await worker.says(/holding/);
  return { db, worker };
}

test("SIGTERM drains: the job ends, the row is gone, the exit code is 0, and no new worker starts meanwhile", async () => {
  const { db, worker } = await startHolding();
  worker.kill("SIGTERM");
  await worker.says(/graceful SIGTERM/);
  await worker.says(/refused: System is shutting down/);
  expect(await db.jobs()).toMatchObject([{ locked_by: expect.stringMatching(/^pool-/) }]);
  worker.send("end");
  expect(await worker.ended).toBe(0);
  expect(worker.output()).toMatch(/promise resolved/);
  expect(await db.jobs()).toEqual([]);
});

test.each(["SIGINT", "SIGHUP", "SIGUSR2"] as const)(
  "%s drains, and then does what it does to any process",
  async (signal) => {
    const { db, worker } = await startHolding();
    worker.kill(signal);
    await worker.says(new RegExp(`graceful ${signal}`));
    worker.send("end");
    expect(await worker.ended).toBe(signal);
    expect(await db.jobs()).toEqual([]);
  },
);

test("a second signal is taken for an echo for five seconds; after that it stops the worker at once", async () => {
  const { db, worker } = await startHolding();
  worker.kill("SIGINT");
  await worker.says(/graceful SIGINT/);
  const firstAt = Date.now();
  let isOver = false;
  void worker.ended.then(() => {
    isOver = true;
  });
  await until(() => {
    if (!isOver) worker.kill("SIGINT");
    return isOver;
  });
  expect(await worker.ended).toBe("SIGINT");
  expect(Date.now() - firstAt).toBeGreaterThanOrEqual(4_900);
  expect(worker.output()).toMatch(/forceful SIGINT/);
  expect(await db.jobs()).toMatchObject([
    { attempts: 1, locked_by: null, last_error: "Forced worker shutdown due to SIGINT" },
  ]);
});

test("the first signal names the jobs it waits for and what a second one does, and a second one is answered", async () => {
  const { worker } = await startHolding("loud");
  worker.kill("SIGINT");
  await worker.says(
    /Waiting for job 1 \(hold\)\. To stop at once, press Ctrl-C again after 5 seconds: what still runs then fails and is tried again later\./,
  );
  worker.kill("SIGINT");
  await worker.says(/Ignored 'SIGINT': it came so soon .* To stop at once, press Ctrl-C again in [1-5] s\./);
  worker.send("end");
  expect(await worker.ended).toBe("SIGINT");
});

test("with noHandleSignals a signal does what it does to any process, and the job stays as it was", async () => {
  const { db, worker } = await startHolding("no-signals");
  worker.kill("SIGTERM");
  expect(await worker.ended).toBe("SIGTERM");
  expect(worker.output()).not.toMatch(/graceful/);
  expect(await db.jobs()).toMatchObject([{ attempts: 1, locked_by: expect.stringMatching(/^pool-/) }]);
});

test("where others listen for the signal too, the worker drains and leaves the end of the process to them", async () => {
  const { db, worker } = await startHolding("own-listener");
  worker.kill("SIGTERM");
  await worker.says(/my own listener/);
  worker.send("end");
  await worker.says(/promise resolved/);
  await worker.says(/ran again/);
  expect(await worker.ended).toBe(7);
  expect(await db.jobs()).toEqual([]);
});

test("an output that nobody reads any more drains the worker", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('hold')");
  const file = fileURLToPath(new URL("signals-process.mjs", import.meta.url));
  const child = spawn(process.execPath, [file, library, db.url, "chatty"], { stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await until(async () => (await db.jobs()).some(({ locked_by }) => locked_by !== null), { what: "the job runs" });
  child.stdout.destroy();
  child.stdin.write("end\n");
  await once(child, "exit");
  expect(await db.jobs()).toEqual([]);
});

test("the handlers are there for all pools once, and gone with the last of them", async () => {
  const db = await freshDatabase();
  const count = (): number[] =>
    (["SIGUSR2", "SIGINT", "SIGTERM", "SIGHUP", "SIGABRT"] as const).map((signal) => process.listenerCount(signal));
  const before = count();
  const quiet = startPool(db, { t: () => undefined });
  expect(count()).toEqual(before);
  const one = startPool(db, { t: () => undefined }, { noHandleSignals: false });
  const other = startPool(db, { t: () => undefined }, { noHandleSignals: false });
  expect(count()).toEqual(before.map((number) => number + 1));
  await one.pool.gracefulShutdown();
  expect(count()).toEqual(before.map((number) => number + 1));
  await other.pool.gracefulShutdown();
  await quiet.pool.gracefulShutdown();
  expect(count()).toEqual(before);
});
