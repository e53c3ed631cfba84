import type { HistoryPageAnswer } from "../../contract.ts";
import type { Page } from "../context.ts";
import { readHistoryQuery } from "../queries.ts";
import { moment, toHistoryRow } from "../rows.ts";

export const history: Page<HistoryPageAnswer> = async ({ cache, utils }, { query }) => {
  const { filter, page } = readHistoryQuery(query);
  const { entries, next } = await cache.get(`history ${JSON.stringify(query)}`, 900, () =>
    utils.listHistory(filter, page),
  );
  return { now: moment(new Date()), entries: entries.map(toHistoryRow), next };
};
