import { payloadRulesOf, version } from "../../../index.ts";
import { permissions, type Session } from "../../contract.ts";
import type { Page } from "../desk.ts";
import { readLimits, readTrends } from "../figures.ts";
import { Fields } from "../read-fields.ts";
import { moment } from "../rows.ts";

export const session: Page<Session> = async (desk, { query, caller }) => {
  new Fields(query, []);
  const { shelf, utils } = desk;
  const [trends, kept, limits] = await Promise.all([
    readTrends(desk, "1h"),
    shelf.get("has history", 10_000, async () => (await utils.listHistory({}, { limit: 1 })).entries.length > 0),
    readLimits(desk),
  ]);
  return {
    user: caller.name,
    can: permissions.filter((permission) => caller.can.has(permission)),
    isReadOnly: desk.isReadOnly,
    canSignOut: caller.hasSession,
    title: desk.title,
    database: desk.database,
    schema: utils.schema,
    version,
    now: moment(new Date()),
    has: { metrics: trends.points.length > 0, history: kept, limits: limits.length > 0 },
    tasks: Object.entries(desk.tasks).map(([name, task]) => ({ name, isChecked: payloadRulesOf(task) !== null })),
  };
};
