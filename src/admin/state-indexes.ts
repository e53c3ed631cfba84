import { buildIndex } from "../db/build-index.ts";
import type { Database } from "../db/database.ts";
import { forSchema } from "../db/statement.ts";
import { hasStateIndexes, stateIndexes, stateIndexText } from "../db/statements/state-indexes.ts";
import { jobTablePages } from "../db/statements/stats.ts";
import type { Logger } from "../logger.ts";

export interface IndexStatesOptions {
  /** Only if the table of jobs has so many pages of 8 kB; 4,096 if left out, which are 32 MB. Smaller ones are read within a moment. */
  readonly leastPages?: number | undefined;
  /** Gives up a build that is under way. */
  readonly signal?: AbortSignal | undefined;
}

/** Builds the indexes of running and of dead jobs, beside everything that goes on. False if the table is small. */
export async function indexStates(
  db: Database,
  logger: Logger,
  { leastPages = 4_096, signal }: IndexStatesOptions = {},
): Promise<boolean> {
  if (await canFindStates(db)) return true;
  const [table] = await db.run(jobTablePages, { schema: db.schema });
  if ((table?.pages ?? 0) < leastPages) return false;
  for (const state of ["running", "dead"] as const) {
    if (signal?.aborted) return false;
    const text = forSchema(stateIndexText(state), db.schema);
    const index = { name: stateIndexes[state], table: "_private_jobs", text };
    await db.withPgClient(async (client) => {
      const { rows } = await client.query<{ pid: number }>("select pg_catalog.pg_backend_pid() as pid");
      const cancel = (): void =>
        void db
          .withPgClient((other) => other.query("select pg_catalog.pg_cancel_backend($1)", [rows[0]!.pid]))
          .catch(() => undefined);
      signal?.addEventListener("abort", cancel, { once: true });
      try {
        await buildIndex({ client, schema: db.schema, index, logger });
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    });
  }
  return true;
}

/** Whether running and dead jobs are found without reading the others. */
export async function canFindStates(db: Pick<Database, "run" | "schema">): Promise<boolean> {
  const [row] = await db.run(hasStateIndexes, { schema: db.schema });
  return row?.has ?? false;
}
