import { type CronItem, getCronItems, getTasks, parseCronItems, parseCrontab } from "graphile-worker";
import preset from "./graphile.config.js";
import { connectionString, here, logger } from "./surroundings.js";

export async function readTasks(): Promise<string[]> {
  const watched = await getTasks({ preset, logger, connectionString }, here("tasks"));
  await watched.release();
  return Object.keys(watched.tasks).toSorted();
}

export async function readCron(): Promise<unknown> {
  const watched = await getCronItems({ preset, logger, connectionString }, here("crontab"));
  await watched.release();
  const items: CronItem[] = [
    {
      task: "send-email",
      match: "*/15 2-4 * * 1,7",
      options: { backfillPeriod: 60_000, jobKey: "k" },
      identifier: "mine",
    },
    { task: "legacy", match: ({ min, dow }) => min === 3 && dow === 1, payload: { a: 1 } },
  ];
  const refused = (text: string): string => {
    try {
      parseCrontab(text);
      return "accepted";
    } catch (error) {
      return error instanceof Error ? "refused" : "odd";
    }
  };
  return {
    file: watched.items,
    parsed: parseCronItems(items).map(({ match, ...rest }) => ({
      ...rest,
      matches: match({ min: 15, hour: 3, date: 5, month: 6, dow: 0 }),
    })),
    refused: ["* * * * *", "60 * * * * a", "* * * * * a ?nonsense=1", "* * * * * a\n* * * * * a", "* * * * 7 a"].map(
      refused,
    ),
  };
}
