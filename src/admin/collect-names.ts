import type { Database } from "../db/database.ts";

interface Found {
  readonly id: number;
}

export interface Collecting {
  /** Locks what may be deleted, in order of id. */
  readonly lock: (tx: Database, after: number, limit: number) => Promise<readonly Found[]>;
  readonly remove: (tx: Database, ids: readonly number[]) => Promise<unknown>;
}

/** Rows locked at a time: an add that wants one of them waits for us. */
const batchSize = 1_000;

/**
 * Deletes rows that no job points to, beside workers and open transactions. They are locked first and looked at again then:
 * a job that was added between the two, and an add that is not committed yet, both keep their row.
 */
export async function collectNames(database: Database, { lock, remove }: Collecting): Promise<void> {
  for (let after = 0, isMore = true; isMore; ) {
    await database.transaction(async (tx) => {
      const ids = (await lock(tx, after, batchSize)).map(({ id }) => id);
      if (ids.length > 0) await remove(tx, ids);
      after = ids.at(-1) ?? after;
      isMore = ids.length === batchSize;
    });
  }
}
