import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { cron as cronTools } from "../../cron/cron.ts";
import type { ParsedCronItem } from "../../cron/cron-item.ts";
import { parseCrontab } from "../../cron/parse-crontab.ts";
import { readKnownCrontabs } from "../../db/statements/read-known-crontabs.ts";
import { compileSharedOptions } from "../../runner/compile.ts";
import { findCronItems } from "../../runner/cron-items.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, wholeNumber } from "../flags.ts";
import { formatMoment } from "../job-table.ts";
import { quietLogger, withQueue } from "../open-queue.ts";
import { resolvePresetOnly } from "../resolve-options.ts";
import { formatTable } from "../table.ts";
import { UsageError } from "../usage-error.ts";

const actions = ["list", "next", "check"] as const;

export const cron = defineCommand({
  command: "cron <action> [file]",
  describe: "Recurring jobs: list what the database knows of them, show the next runs, or check a crontab",
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
      const rows = await withQueue(args, (queue) => queue.database.run(readKnownCrontabs, undefined));
      if (args.json) return terminal.printJson(rows);
      if (rows.length === 0) return terminal.note("No recurring job has been scheduled yet.");
      return terminal.print(
        formatTable(rows, [
          { title: "ENTRY", text: (row) => row.identifier, maxWidth: 40 },
          { title: "KNOWN SINCE", text: (row) => row.known_since.toISOString() },
          { title: "LAST RUN", text: (row) => formatMoment(row.last_execution) || "never" },
        ]),
      );
    }
    const items = file === undefined ? await findItems(args.config) : await readItems(file);
    if (args.action === "check") {
      if (args.json) return terminal.printJson(items.map(({ identifier, task }) => ({ identifier, task })));
      return terminal.print(
        `${file ?? "The crontab"} is fine: ${items.length} ${items.length === 1 ? "entry" : "entries"}.`,
      );
    }
    const runs = nextRuns(items, wholeNumber("count", args.count, 1) ?? 1);
    if (args.json) return terminal.printJson(runs);
    if (runs.length === 0) return terminal.note("There are no recurring jobs.");
    terminal.print(
      formatTable(runs, [
        { title: "AT", text: (run) => run.at.toISOString() },
        { title: "LOCAL TIME", text: (run) => `${run.localTime} ${run.timeZone}` },
        { title: "ENTRY", text: (run) => run.identifier, maxWidth: 40 },
        { title: "TASK", text: (run) => run.task, maxWidth: 40 },
      ]),
    );
  },
});

async function readItems(file: string): Promise<ParsedCronItem[]> {
  const text = await readFile(resolve(file), "utf8").catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === "ENOENT" ? `There is no file '${file}'.` : `Could not read '${file}': ${error.message}`,
    );
  });
  return parseCrontab(text, { file });
}

async function findItems(config: string | undefined): Promise<ParsedCronItem[]> {
  const preset = await resolvePresetOnly(config);
  return findCronItems(compileSharedOptions({ preset, logger: quietLogger() }));
}

interface NextRun {
  readonly at: Date;
  readonly localTime: string;
  readonly timeZone: string;
  readonly identifier: string;
  readonly task: string;
}

function nextRuns(items: readonly ParsedCronItem[], count: number): NextRun[] {
  const runs = items.flatMap((item) =>
    cronTools.next(item, new Date(), count).map(({ at, localTime, timeZone }) => ({
      at,
      localTime,
      timeZone,
      identifier: item.identifier,
      task: item.task,
    })),
  );
  return runs.sort((a, b) => a.at.getTime() - b.at.getTime());
}
