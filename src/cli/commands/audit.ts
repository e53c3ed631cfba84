import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseMoment, wholeNumber } from "../flags.ts";
import { formatMoment } from "../job-table.ts";
import { formatTable } from "../table.ts";
import { withUtils } from "../with-utils.ts";

export const audit = defineCommand({
  command: "audit",
  describe: "List what was done in the dashboard: who, what, when, how many",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    by: { type: "string", requiresArg: true, describe: "Only what this person did" },
    action: { type: "string", requiresArg: true, describe: "Only this action, such as retry or pause" },
    limit: { alias: "n", type: "number", default: 50, describe: "Entries to show, 1 to 1000" },
    before: { type: "string", requiresArg: true, describe: "Only entries with a lower id (the next page)" },
    "delete-before": {
      type: "string",
      requiresArg: true,
      describe: "Delete what is older: a date, or how long ago (90d)",
    },
  },
  async run(args, terminal) {
    const deleteBefore = args["delete-before"];
    if (deleteBefore !== undefined) {
      const before = parseMoment("delete-before", deleteBefore, -1);
      const deleted = await withUtils(args, (utils) => utils.deleteActions(before));
      return args.json ? terminal.printJson({ deleted }) : terminal.print(`Deleted ${deleted} entries.`);
    }
    const limit = wholeNumber("limit", args.limit, 1, 1000);
    const page = await withUtils(args, (utils) =>
      utils.listActions({ by: args.by, action: args.action }, { limit, after: args.before }),
    );
    if (args.json) return terminal.printJson(page);
    if (page.actions.length === 0) return terminal.note("Nothing was done yet.");
    terminal.print(
      formatTable(
        page.actions,
        [
          { title: "ID", text: (row) => row.id },
          { title: "AT", text: (row) => formatMoment(row.started_at) },
          { title: "BY", text: (row) => row.done_by ?? "", maxWidth: 30, minWidth: 8 },
          { title: "ACTION", text: (row) => row.action, maxWidth: 30, minWidth: 8 },
          { title: "CHANGED", text: (row) => String(row.changed) },
          { title: "STATE", text: (row) => row.state },
          { title: "WHAT", text: (row) => JSON.stringify(row.target), maxWidth: 60, minWidth: 10 },
        ],
        terminal.width,
      ),
    );
    if (page.next !== null) terminal.note(`More: --before ${page.next}`);
  },
});
