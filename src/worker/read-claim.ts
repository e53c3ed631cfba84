import type { Database } from "../db/database.ts";
import type { ClaimedRow } from "../db/statements/claim-jobs.ts";
import { readPayloads } from "../db/statements/read-payloads.ts";
import type { Job } from "../job.ts";
import { claimedJob } from "./claimed-job.ts";
import type { Strays } from "./strays.ts";

export interface ReadClaimOptions {
  readonly database: Pick<Database, "run">;
  readonly poolId: string;
  readonly nameById: ReadonlyMap<number, string>;
  readonly strays: Strays;
}

/** Makes jobs of a claim's answer, and says how many bytes they came in. Large payloads are read now, each by itself. */
export async function readClaim(
  answer: string | null | undefined,
  { database, poolId, nameById, strays }: ReadClaimOptions,
): Promise<{ jobs: Job[]; bytes: number }> {
  if (!answer) return { jobs: [], bytes: 0 };
  const lockedAt = new Date();
  const rows: readonly ClaimedRow[] = JSON.parse(answer);
  const makeJob = (row: ClaimedRow, payload: unknown): Job =>
    claimedJob(row, payload, nameById.get(row[2])!, poolId, lockedAt);
  const jobIds = rows.filter((row) => row[14]).map(([id]) => id);
  if (jobIds.length === 0) return { jobs: rows.map((row) => makeJob(row, row[3])), bytes: answer.length };

  let bytes = answer.length;
  const payloadById = new Map<string, unknown>();
  try {
    for (const { id, payload } of await database.run(readPayloads, { poolId, jobIds })) {
      bytes += payload.length;
      payloadById.set(id, JSON.parse(payload));
    }
  } finally {
    // What we could not read is locked for us all the same, unless somebody has taken it away meanwhile.
    if (payloadById.size < jobIds.length) strays.expect();
  }
  const readable = rows.filter((row) => !row[14] || payloadById.has(row[0]));
  return { jobs: readable.map((row) => makeJob(row, row[14] ? payloadById.get(row[0]) : row[3])), bytes };
}
