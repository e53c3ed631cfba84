import type { Database } from "../../db/database.ts";
import type { Bound } from "../../db/statement.ts";
import type { ClaimLimitedParams, ClaimLimitedRow } from "../../db/statements/claim-limited.ts";
import type { UnwrittenRow } from "../../db/statements/settle.ts";
import { andClaim } from "../../db/statements/settle-and-claim.ts";
import type { EndedJob } from "./ended-job.ts";

/** A claim of limited jobs that goes with the statement that frees their places. No other claim begins before it is over. */
export interface LentClaim {
  readonly params: ClaimLimitedParams;
  /** Jobs are claimed only if the database knows us as alive. */
  readonly isWatched: boolean;
  /** `freed` are the jobs whose places are free now. */
  readonly onAnswer: (row: ClaimLimitedRow | undefined, freed: readonly EndedJob[]) => Promise<void>;
  readonly onOver: () => void;
}

/** Gives undefined unless the pool has claimed all that its limits allowed, and waits. */
export type Lend = (ended: readonly EndedJob[]) => LentClaim | undefined;

/** Settles these jobs; the same statement takes their places again. */
export async function settleAndClaim(
  database: Database,
  { statement, params }: Bound<UnwrittenRow>,
  ended: readonly EndedJob[],
  claim: LentClaim,
): Promise<UnwrittenRow[]> {
  try {
    const rows = await database.run(andClaim(statement, claim.isWatched), { settled: params, claim: claim.params });
    const [row] = rows;
    const isHeld = ({ jobId }: EndedJob): boolean => row?.held?.includes(jobId) ?? false;
    await claim.onAnswer(
      row && row.took_ms !== null ? row : undefined,
      ended.filter((each) => !isHeld(each)),
    );
    return rows;
  } finally {
    claim.onOver();
  }
}
