import { access } from "node:fs/promises";
import { cron as cronTools, getCronItems, type WatchedCronItems } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, wholeNumber } from "../flags.ts";
import { formatMoment } from "../job-table.ts";
import { resolvePresetOnly } from "../resolve-options.ts";
import { formatTable } from "../table.ts";
import { UsageError } from "../usage-error.ts";
import { quietLogger, withUtils } from "../with-utils.ts";

const actions = ["list", "next", "check"] as const;

export const cron = defineCommand({
  command: "cron <action> [file]",
  describe: "Recurring jobs: list those recorded in the database, show the next runs, or check a crontab",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    crontab: { type: "string", requiresArg: true, describe: "The crontab (default: the config file's, or ./crontab)" },
    count: { alias: "n", type: "number", default: 5, describe: "Runs to show for each entry" },
  },
  positionals: {
    action: { choices: actions, demandOption: true, describe: "list, next or check" },
    file: { type: "string", describe: "The crontab to check" },
  },
  async run(args, terminal) {
    const file = args.file ?? args.crontab;
    if (args.action === "list") {
      const rows = await withUtils(args, (utils) => utils.listCrontabs());
      if (args.json) return terminal.printJson(rows);
      if (rows.length === 0) return terminal.note("No recurring job has been scheduled yet.");
      return terminal.print(
        formatTable(
          rows,
          [
            { title: "ENTRY", text: (row) => row.identifier, maxWidth: 40, minWidth: 12 },
            { title: "KNOWN SINCE", text: (row) => row.known_since.toISOString() },
            { title: "LAST RUN", text: (row) => formatMoment(row.last_execution) || "never" },
          ],
          terminal.width,
        ),
      );
    }
    const found = await readCronItems(args.config, file);
    if (args.action === "check") {
      const { items } = found;
      if (args.json) return terminal.printJson(items.map(({ identifier, task }) => ({ identifier, task })));
      return terminal.print(
        `${file ?? "The crontab"} is fine: ${items.length} ${items.length === 1 ? "entry" : "entries"}.`,
      );
    }
    const runs = nextRuns(found, wholeNumber("count", args.count, 1) ?? 1);
    if (args.json) return terminal.printJson(runs);
    if (runs.length === 0) return terminal.note("There are no recurring jobs.");
    terminal.print(
      formatTable(
        runs,
        [
          { title: "AT", text: (run) => run.at.toISOString(), drop: 1 },
          { title: "LOCAL TIME", text: (run) => `${run.localTime} ${run.timeZone}` },
          { title: "ENTRY", text: (run) => run.identifier, maxWidth: 40, minWidth: 10 },
          { title: "TASK", text: (run) => run.task, maxWidth: 40, minWidth: 10, drop: 2 },
        ],
        terminal.width,
      ),
    );
  },
});

/** The crontab that was named, or all recurring jobs of the config file. */
async function readCronItems(config: string | undefined, file: string | undefined): Promise<WatchedCronItems> {
  if (file !== undefined) {
    await access(file).catch(() => {
      throw new UsageError(`There is no file '${file}'.`);
    });
  }
  const options = { preset: await resolvePresetOnly(config), logger: quietLogger() };
  return file === undefined ? getCronItems(options) : getCronItems(options, file);
}

interface NextRun {
  readonly at: Date;
  readonly localTime: string;
  readonly timeZone: string;
  readonly identifier: string;
  readonly task: string;
}

function nextRuns({ items, timeZone: zone }: WatchedCronItems, count: number): NextRun[] {
  const runs = items.flatMap((item) =>
    cronTools.next(item, new Date(), count, zone).map(({ at, localTime, timeZone }) => ({
      at,
      localTime,
      timeZone,
      identifier: item.identifier,
      task: item.task,
    })),
  );
  return runs.sort((a, b) => a.at.getTime() - b.at.getTime());
}
