import type { ErrorGroup } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseMoment, wholeNumber } from "../flags.ts";
import { formatCount, formatMoment } from "../job-table.ts";
import { type Column, formatTable } from "../table.ts";
import { withUtils } from "../with-utils.ts";

export const errors = defineCommand({
  command: "errors",
  describe: "List failures in groups, the latest first (needs the option 'history')",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    task: { alias: "identifier", type: "string", requiresArg: true, describe: "A task's identifier" },
    since: { type: "string", requiresArg: true, describe: "Failed since then: a date, or how long ago (15m, 2h, 7d)" },
    limit: { type: "number", default: 50, describe: "Groups to show" },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1);
    const since = args.since === undefined ? undefined : parseMoment("since", args.since, -1);
    const groups = await withUtils(args, (utils) => utils.listErrors({ task: args.task, since, limit }));
    if (args.json) return terminal.printJson(groups);
    if (groups.length === 0) return terminal.note("No failure is kept that matches.");
    terminal.print(formatTable(groups, columns, terminal.width));
    terminal.note("The attempts of a group: hathi history --fingerprint <group>");
  },
});

const columns: Column<ErrorGroup>[] = [
  { title: "GROUP", text: (group) => group.fingerprint },
  {
    title: "COUNT",
    text: ({ count, has_more: hasMore }) => `${formatCount(count)}${hasMore ? "+" : ""}`,
    align: "right",
  },
  { title: "JOBS", text: ({ jobs }) => (jobs === null ? "" : formatCount(jobs)), align: "right", drop: 3 },
  { title: "TASK", text: (group) => group.task_identifier, maxWidth: 30, minWidth: 10 },
  { title: "FIRST", text: (group) => formatMoment(group.first_at), drop: 2 },
  { title: "LAST", text: (group) => formatMoment(group.last_at), drop: 1 },
  { title: "JOB", text: (group) => group.example_id, align: "right", drop: 4 },
  { title: "CLASS", text: (group) => group.error_class, maxWidth: 24, minWidth: 8, drop: 5 },
  { title: "ERROR", text: (group) => group.example_error, maxWidth: 50, minWidth: 15, drop: 0 },
];
