import { onTestFinished, vi } from "vitest";
import type { RunnerOptions } from "../../src/index.ts";
import { type TestDatabase, testPool } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { loadLibrary, observed } from "./library.ts";

/** Stops the clock that both libraries read, while timers stay real; gives the way to set it. */
export function stopClock(at: string): (at: string) => void {
  vi.useFakeTimers({ toFake: ["Date"], now: new Date(at) });
  onTestFinished(() => void vi.useRealTimers());
  return (later) => void vi.setSystemTime(new Date(later));
}

/** Schedules with either library until the test is over. Unless a task is given, the jobs stay to be seen. */
export async function startCron(isOurs: boolean, db: TestDatabase, options: RunnerOptions) {
  const library = await loadLibrary(isOurs);
  const { heard, count, options: watching } = observed(library);
  const runner = await library.run({
    ...watching,
    // The original does not wait for the end of a pool of its own, and the database is dropped soon after.
    pgPool: testPool(db.url),
    taskList: { other: () => undefined },
    ...options,
  });
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (isStopped) return;
    isStopped = true;
    await runner.stop();
  };
  onTestFinished(stop);
  return {
    stop,
    count,
    /** Resolves when the back-fill is done. */
    started: () => until(() => count("cron:started") > 0),
    /** Cron's own events, with what they carry beside the context. */
    heard: () =>
      heard
        .filter(({ name }) => name.startsWith("cron:"))
        .map(({ name, payload: { ctx: _ctx, ...payload } }) => [name, payload] as const),
  };
}

export async function know(db: TestDatabase, identifier: string, since: string, last: string | null = null) {
  await db.query("insert into graphile_worker._private_known_crontabs values ($1, $2, $3)", [identifier, since, last]);
}

export function knownCrontabs(db: TestDatabase) {
  return db.query("select * from graphile_worker._private_known_crontabs order by identifier");
}
