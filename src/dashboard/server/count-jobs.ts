import type { JobFilter } from "../../index.ts";
import type { DashboardContext } from "./context.ts";
import { ScanPace } from "./scan-pace.ts";

/** How many jobs match, as far as a moment and the bound allow to count; `isAll` if there are no more. */
export async function countJobs(
  { utils }: Pick<DashboardContext, "utils">,
  filter: JobFilter,
  atMost = Infinity,
): Promise<{ readonly found: number; readonly isAll: boolean }> {
  const pace = new ScanPace(filter);
  let found = 0;
  let after: string | null = null;
  do {
    const { ids, next } = await pace.time(() => utils.scanJobs(filter, { after, lookAt: pace.step }));
    found += ids.length;
    after = next;
  } while (after !== null && found < atMost && pace.hasTime);
  return { found, isAll: after === null };
}
