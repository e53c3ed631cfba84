import type { Database } from "../db/database.ts";
import { readClock } from "../db/statements/cron.ts";
import { sleep } from "../util/sleep.ts";
import { monotonicMs } from "../util/timers.ts";
import type { Clock } from "./clock.ts";

/** A clock that goes by the database's, whatever becomes of the machine's own. */
export async function databaseClock(database: Pick<Database, "run">): Promise<Clock> {
  const [row] = await database.run(readClock, undefined);
  const origin = row!.clock_ms - monotonicMs();
  return { now: () => origin + monotonicMs(), sleep };
}
