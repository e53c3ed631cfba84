import { isInDoubt, isRepeatable, isTransient } from "../../db/sqlstate.ts";
import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import type { Outage } from "./outage.ts";

const repeatBackoff = { minMs: 10, maxMs: 1_000, factor: 1.5 };
/** Short, so that the outcomes of jobs are written soon after an outage, and before others may take the jobs. */
const unreachableBackoff = { minMs: 100, maxMs: 1_000, factor: 1.5 };
/** A refusal may be a passing state of affairs (a migration, a lock, a role); after this many it is not. */
const maxRefusals = 12;

/**
 * Writes something that must not be lost: tries until it is through. Gives up, by throwing, only when the signal aborts or the
 * database keeps refusing for a reason that is neither a conflict nor an outage. The writer learns if an earlier try may
 * have gone through unheard.
 */
export async function persist<T>(
  write: (mayBeDone: boolean) => Promise<T>,
  outage: Outage,
  signal: AbortSignal,
): Promise<T> {
  const part = {};
  let refusals = 0;
  let mayBeDone = false;
  for (let attempt = 0; ; attempt++) {
    try {
      const result = await write(mayBeDone);
      outage.well(part);
      return result;
    } catch (error) {
      mayBeDone ||= isInDoubt(error);
      outage.suspect(error);
      if (signal.aborted || (!isTransient(error) && ++refusals >= maxRefusals)) {
        outage.leave(part);
        throw error;
      }
      if (!isRepeatable(error)) outage.trouble(part, error);
      await sleep(backoffMs(isRepeatable(error) ? repeatBackoff : unreachableBackoff, attempt), signal);
    }
  }
}
