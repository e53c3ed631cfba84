import type { Limit, WaitingKeys } from "../../../index.ts";
import type { BoundedCount, LimitInfo, LimitsPage } from "../../contract.ts";
import type { DashboardContext, Page } from "../context.ts";
import { Fields } from "../read-fields.ts";
import { redactKey } from "../redact.ts";
import { firstLine, moment, toPause } from "../rows.ts";
import { readLimits, readPauses, readWaitingKeys } from "../shared-reads.ts";

export const limits: Page<LimitsPage> = async (context, { query }) => {
  new Fields(query, []);
  const [found, pauses] = await Promise.all([readLimits(context), readPauses(context)]);
  const waiting = found.some(({ path }) => path.length > 0) ? await readWaitingKeys(context) : [];
  return {
    now: moment(new Date()),
    limits: found.slice(0, 500).map((limit) => toLimitInfo(limit, context.redact, waiting)),
    pauses: pauses.slice(0, 500).map((pause) => toPause(pause)!),
  };
};

const mostKeys = 50;

export function toLimitInfo(
  found: Limit,
  hidden: DashboardContext["redact"],
  waiting: readonly WaitingKeys[] = [],
): LimitInfo {
  const { name, kind, path, isShared, tasks, limit, periodMs, burst, weight } = found;
  const next = waiting.find(
    (one) =>
      one.name === name && one.kind === kind && one.isShared === isShared && one.path.join("\0") === path.join("\0"),
  );
  const shown = (key: string): string => redactKey(key, path, hidden);
  return {
    name,
    kind,
    path,
    isShared,
    tasks,
    limit,
    periodMs,
    burst,
    weight,
    running: counted(found.running),
    waiting: counted(found.waiting),
    keys: found.overrides
      .slice(0, mostKeys)
      .map((own) => ({ key: shown(own.key), limit: own.limit, weight: own.weight })),
    holds: found.holds.slice(0, mostKeys).map(({ key, until, reason }) => ({
      key: key === null ? null : shown(key),
      until: moment(until),
      reason: firstLine(reason),
    })),
    waitingKeys: (next?.keys ?? []).map(({ key, jobs }) => ({ key: shown(key), jobs })),
    waitingLookedAt: next?.lookedAt ?? 0,
    isChanged: found.isChanged || found.isSetAtRunTime,
  };
}

/** The library stops counting at one more. */
const mostCounted = 10_000;

function counted(count: number): BoundedCount {
  return { count: Math.min(count, mostCounted), isMore: count > mostCounted };
}
