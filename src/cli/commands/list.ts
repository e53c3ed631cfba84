import { filterOf } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, wholeNumber } from "../flags.ts";
import { formatJobs } from "../job-table.ts";
import { withUtils } from "../with-utils.ts";

export const list = defineCommand({
  command: "list",
  describe: "List jobs, newest first",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...jsonFlag,
    limit: { type: "number", default: 50, describe: "Jobs on a page" },
    before: {
      type: "string",
      requiresArg: true,
      describe: "Only jobs older than the one with this id (the next page)",
    },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1);
    const page = await withUtils(args, (utils) => utils.listJobs(filterOf(args), { limit, after: args.before }));
    if (args.json) return terminal.printJson(page);
    if (page.jobs.length === 0) return terminal.note("No job matches.");
    terminal.print(formatJobs(page.jobs, terminal));
    if (page.next !== null) terminal.note(`More with --before ${page.next}`);
  },
});
