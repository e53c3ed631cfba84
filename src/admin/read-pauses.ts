import type { Database } from "../db/database.ts";
import { hasPauses, listPauses } from "../db/statements/pauses.ts";
import type { Pause } from "../pause.ts";

/** The pauses in force by the database's clock; none in a schema that cannot have any yet. */
export async function readPauses(db: Database): Promise<Pause[]> {
  const [table] = await db.run(hasPauses, { schema: db.schema });
  if (!table?.has) return [];
  const rows = await db.run(listPauses, { clock: null });
  return rows.map(({ paused_at: pausedAt, paused_by: pausedBy, ...rest }) => ({ ...rest, pausedAt, pausedBy }));
}
