import type { JobPage } from "../../index.ts";
import { filterOf } from "../chosen-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, filterFlags, jsonFlag, watchFlags, wholeNumber } from "../flags.ts";
import { formatJobs } from "../job-table.ts";
import { refreshIf } from "../refresh.ts";
import type { Terminal } from "../terminal.ts";
import { withUtils } from "../with-utils.ts";

export const list = defineCommand({
  command: "list",
  describe: "List jobs, newest first",
  flags: {
    ...databaseFlags,
    ...filterFlags,
    ...jsonFlag,
    ...watchFlags,
    limit: { type: "number", default: 50, describe: "Jobs on a page" },
    before: {
      type: "string",
      requiresArg: true,
      describe: "Only jobs older than the one with this id (the next page)",
    },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1);
    const filter = filterOf(args);
    await withUtils(args, (utils) =>
      refreshIf(args, terminal, async (out) => {
        const page = await utils.listJobs(filter, { limit, after: args.before });
        if (args.json) out.printJson(page);
        else printPage(page, out);
      }),
    );
  },
});

function printPage({ jobs, next }: JobPage, out: Terminal): void {
  if (jobs.length === 0) out.note("No job matches.");
  else out.print(formatJobs(jobs, out));
  if (next !== null) out.note(`More with --before ${next}`);
}
