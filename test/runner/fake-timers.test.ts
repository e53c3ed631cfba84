import { expect, onTestFinished, test, vi } from "vitest";
import { run } from "../../src/runner/run.ts";
import { runTaskListOnce } from "../../src/runner/run-task-list.ts";
import type { TaskList } from "../../src/task.ts";
import { deferred } from "../../src/util/deferred.ts";
import { freshDatabase, testPool } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { recordEvents } from "../worker/kit.ts";

/* Nothing here may wait with a timer of its own, since all of them are faked: events and promises only. */

const hours = 3_600_000;

/** What vitest and jest fake when they are asked for everything that pg can do without. */
function fakeEverything(): void {
  vi.useFakeTimers({
    toFake: [
      "setTimeout",
      "clearTimeout",
      "setInterval",
      "clearInterval",
      "setImmediate",
      "clearImmediate",
      "queueMicrotask",
      "Date",
      "performance",
      "hrtime",
    ],
  });
  onTestFinished(() => void vi.useRealTimers());
}

const ok = (): void => undefined;
const bad = (): never => {
  throw new Error("no");
};

test("with all timers faked, runTaskListOnce runs what is due and ends", async () => {
  const db = await freshDatabase();
  await db.query("select graphile_worker.add_job('ok') from generate_series(1, 20)");
  await db.query("select graphile_worker.add_job('bad', queue_name => 'q')");
  const client = await testPool(db.url).connect();
  onTestFinished(() => client.release());
  fakeEverything();
  const { logger } = rememberingLogger();
  await runTaskListOnce({ logger, noHandleSignals: true }, { ok, bad }, client);
  expect(await db.jobs()).toMatchObject([{ task_identifier: "bad", attempts: 1, last_error: "no", locked_at: null }]);
});

test("a worker does not take hours of a faked clock for an outage, nor itself for dead", async () => {
  const db = await freshDatabase();
  const recording = recordEvents();
  const { logger, lines } = rememberingLogger();
  const runs = Array.from({ length: 3 }, () => deferred());
  const taskList: TaskList = { ok: (payload) => runs[(payload as { run: number }).run]!.resolve() };
  fakeEverything();

  const starting = run({
    connectionString: db.url,
    logger,
    taskList,
    events: recording.events,
    noHandleSignals: true,
    recovery: true,
    concurrency: 2,
  });
  vi.advanceTimersByTime(6 * hours); // while it connects
  const runner = await starting;
  onTestFinished(() => runner.kill().catch(() => undefined));
  await runner.addJob("ok", { run: 0 });
  await runs[0]!.promise;
  const [{ workerPool: pool } = {}] = recording.of("pool:create");
  const id = pool!.id;

  await vi.advanceTimersByTimeAsync(6 * hours);
  await runner.addJob("ok", { run: 1 });
  await runs[1]!.promise;

  // While a statement waits for its answer: the claim needs the table.
  const other = await testPool(db.url).connect();
  await other.query("begin; lock table graphile_worker._private_jobs in access exclusive mode");
  const added = runner.addJob("ok", { run: 2 });
  pool!.nudge(1);
  await vi.advanceTimersByTimeAsync(6 * hours);
  await other.query("commit");
  other.release();
  await added;
  await runs[2]!.promise;

  expect(pool!.id).toBe(id);
  await runner.stop();
  expect(lines.filter(({ level }) => level === "warning" || level === "error")).toEqual([]);
});
