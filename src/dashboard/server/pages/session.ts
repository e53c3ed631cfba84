import { payloadRulesOf, version } from "../../../index.ts";
import { permissions, type Session } from "../../contract.ts";
import type { Page } from "../context.ts";
import { Fields } from "../read-fields.ts";
import { moment } from "../rows.ts";
import { readLimits, readTrends } from "../shared-reads.ts";

export const session: Page<Session> = async (context, { query, caller }) => {
  new Fields(query, []);
  const { cache, utils } = context;
  const [trends, kept, limits] = await Promise.all([
    readTrends(context, "1h"),
    cache.get("has history", 10_000, async () => (await utils.listHistory({}, { limit: 1 })).entries.length > 0),
    readLimits(context),
  ]);
  return {
    user: caller.name,
    can: permissions.filter((permission) => caller.can.has(permission)),
    isReadOnly: context.isReadOnly,
    canSignOut: caller.hasSession,
    title: context.title,
    database: context.database,
    schema: utils.schema,
    version,
    now: moment(new Date()),
    has: { metrics: trends.points.length > 0, history: kept, limits: limits.length > 0 },
    tasks: Object.entries(context.tasks).map(([name, task]) => ({ name, isChecked: payloadRulesOf(task) !== null })),
  };
};
