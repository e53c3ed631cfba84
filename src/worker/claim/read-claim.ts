import type { ClaimedRow } from "../../db/statements/claim.ts";
import type { Job } from "../../job.ts";
import { claimedJob } from "./claimed-job.ts";

export interface ReadClaimOptions {
  readonly poolId: string;
  readonly nameById: ReadonlyMap<number, string>;
}

export interface ReadClaim {
  /** In the order they should start. */
  readonly jobs: Job[];
  /** Those whose payload was left out because it is large: see `PayloadReader`. */
  readonly unread: ReadonlySet<Job>;
  readonly bytes: number;
}

/** Makes jobs of a claim's answer, and says how many bytes they came in. */
export function readClaim(answer: string | null | undefined, { poolId, nameById }: ReadClaimOptions): ReadClaim {
  if (!answer) return { jobs: [], unread: new Set(), bytes: 0 };
  const lockedAt = new Date();
  const rows: readonly ClaimedRow[] = JSON.parse(answer);
  const unread = new Set<Job>();
  const jobs = rows.map((row) => {
    const job = claimedJob(row, row[3], nameById.get(row[2])!, poolId, lockedAt);
    if (row[14]) unread.add(job);
    return job;
  });
  return { jobs, unread, bytes: answer.length };
}
