// Recurring jobs by the clocks of several time zones, from a crontab.
import { readFile } from "node:fs/promises";
import { cron, parseCrontab, run } from "hathi";
import { openDatabase } from "../database.mjs";

const crontab = await readFile(new URL("crontab", import.meta.url), "utf8");

// The weekend on which the clocks of Berlin jump from two to three.
const from = new Date("2031-03-28T12:00:00Z");
for (const item of parseCrontab(crontab).filter(({ task }) => task === "report")) {
  console.log(`${item.identifier} after ${from.toISOString()}:`);
  for (const { localTime, clockChange } of cron.next(item, from, 3)) {
    console.log(`  ${localTime}${clockChange ? ` (${clockChange})` : ""}`);
  }
}

const database = await openDatabase();
const runner = await run({
  connectionString: database.connectionString,
  crontab,
  taskList: {
    report: ({ city }) => console.log(`Good morning, ${city}`),
    "say-time": ({ _cron }) => {
      console.log(`It is ${_cron.ts}`);
      void runner.stop("Seen enough");
    },
  },
});
await runner.promise;
await database.stop();
