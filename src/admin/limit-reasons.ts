import type { Database } from "../db/database.ts";
import { explainLimits, type JobLimitRow } from "../db/statements/explain-limits.ts";
import { hasLimits } from "../db/statements/limits.ts";
import type { Reason } from "./job-reason.ts";

/** The limits that keep a due job from starting now. */
export async function findLimitReasons(db: Database, id: string): Promise<Reason[]> {
  const [table] = await db.run(hasLimits, { schema: db.schema });
  if (!table?.has) return [];
  return (await db.run(explainLimits, { id })).flatMap(toReasons);
}

function toReasons(row: JobLimitRow): Reason[] {
  const { name: limit, key, path, places, period_ms: periodMs, taken, ahead, is_cut: isCut } = row;
  const facts = {
    kind: "limited",
    limit,
    key,
    path,
    places,
    periodMs,
    taken,
    ahead,
    isCut,
    holders: row.holders ?? [],
  } as const;
  const reasons: Reason[] = [];
  if (row.held_until) reasons.push({ ...facts, by: "hold", releaseAt: row.held_until, reason: row.hold_reason });
  if (row.kind === "concurrency" && taken !== null && places !== null && taken >= places) {
    reasons.push({ ...facts, by: "concurrency", releaseAt: null, reason: null });
  }
  if (row.kind === "rate" && (row.free_at || places === 0)) {
    reasons.push({ ...facts, by: "rate", releaseAt: row.free_at, reason: null });
  }
  return reasons;
}
