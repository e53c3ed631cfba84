import type { LimitInfo, LimitsPage } from "../../contract.ts";
import type { Desk, Page } from "../desk.ts";
import { readPauses } from "../figures.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause } from "../rows.ts";

export const limits: Page<LimitsPage> = async (desk, { query }) => {
  new Fields(query, []);
  const [found, pauses] = await Promise.all([readLimits(desk), readPauses(desk)]);
  return { now: moment(new Date()), limits: found, pauses: pauses.slice(0, 500).map((pause) => toPause(pause)!) };
};

export async function readLimits(_desk: Desk): Promise<LimitInfo[]> {
  return [];
}
