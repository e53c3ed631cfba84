import type { Database } from "../db/database.ts";
import { findOddSettings } from "../db/odd-settings.ts";
import type { Logger } from "../logger.ts";

/** Logs each setting of the role that harms the queue, before something fails because of it. */
export async function reportSettings(database: Pick<Database, "run">, logger: Logger): Promise<void> {
  // A database that does not answer is reported by what is done next.
  const odd = await findOddSettings(database).catch(() => []);
  for (const { status, message } of odd) logger[status === "problem" ? "error" : "warn"](message);
}
