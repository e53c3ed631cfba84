import type { Database } from "../db/database.ts";
import { listQueues as listQueuesStatement, type QueueRow } from "../db/statements/list-queues.ts";

export type QueueStatus = QueueRow;

export interface ListQueuesOptions {
  /** Queues at most; 50 if left out. */
  readonly limit?: number | undefined;
  /** Part of the name. */
  readonly search?: string | undefined;
}

/** Named queues that are held by a running job or have jobs waiting, fullest first. */
export function listQueues(db: Database, { limit = 50, search }: ListQueuesOptions = {}): Promise<QueueStatus[]> {
  return db.run(listQueuesStatement, { limit, search: search ?? null });
}
