import type { Limit } from "../../../index.ts";
import type { BoundedCount, LimitInfo, LimitsPage } from "../../contract.ts";
import type { Page } from "../desk.ts";
import { readLimits, readPauses } from "../figures.ts";
import { Fields } from "../read-fields.ts";
import { firstLine, moment, toPause } from "../rows.ts";

export const limits: Page<LimitsPage> = async (desk, { query }) => {
  new Fields(query, []);
  const [found, pauses] = await Promise.all([readLimits(desk), readPauses(desk)]);
  return {
    now: moment(new Date()),
    limits: found.slice(0, 500).map(toLimitInfo),
    pauses: pauses.slice(0, 500).map((pause) => toPause(pause)!),
  };
};

const mostKeys = 50;

export function toLimitInfo(found: Limit): LimitInfo {
  const { name, kind, path, isShared, tasks, limit, periodMs, burst, weight } = found;
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
    keys: found.overrides.slice(0, mostKeys).map((own) => ({ key: own.key, limit: own.limit, weight: own.weight })),
    holds: found.holds
      .slice(0, mostKeys)
      .map(({ key, until, reason }) => ({ key, until: moment(until), reason: firstLine(reason) })),
    isChanged: found.isChanged || found.isSetAtRunTime,
  };
}

/** The library stops counting at one more. */
const mostCounted = 10_000;

function counted(count: number): BoundedCount {
  return { count: Math.min(count, mostCounted), isMore: count > mostCounted };
}
