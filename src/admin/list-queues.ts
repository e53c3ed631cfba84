import type { Database } from "../db/database.ts";
import { listQueues as listQueuesStatement, type QueueRow } from "../db/statements/queues.ts";
import type { Pause } from "../pause.ts";
import { readPauses } from "./read-pauses.ts";

export interface QueueStatus extends QueueRow {
  /** The pause of this queue, if there is one. */
  readonly pause: Pause | null;
}

export interface ListQueuesOptions {
  /** The most queues to return. Default 50. */
  readonly limit?: number | undefined;
  /** A part of the name. */
  readonly search?: string | undefined;
  /** Count this many jobs at most, in the order in which they are claimed. Default: all. */
  readonly lookAt?: number | undefined;
}

/** Named queues that are paused, held by a running job or have jobs waiting, fullest first. */
export async function listQueues(
  db: Database,
  { limit = 50, search, lookAt }: ListQueuesOptions = {},
): Promise<QueueStatus[]> {
  const rows = await db.run(listQueuesStatement, { limit, search: search ?? null, lookAt: lookAt ?? null });
  const pauses = (await readPauses(db)).filter(({ kind }) => kind === "queue");
  return rows.map((row) => ({ ...row, pause: pauses.find(({ name }) => name === row.queue_name) ?? null }));
}
