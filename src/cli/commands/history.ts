import type { HistoryOutcome } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseMoment, wholeNumber } from "../flags.ts";
import { formatHistory } from "../history-table.ts";
import { withUtils } from "../with-utils.ts";

export const history = defineCommand({
  command: "history",
  describe: "List how attempts of jobs ended, newest first (needs the option 'history')",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    task: { alias: "identifier", type: "string", requiresArg: true, describe: "A task's identifier" },
    queue: { type: "string", requiresArg: true, describe: "A queue's name" },
    key: { type: "string", requiresArg: true, describe: "A job's key" },
    outcome: {
      type: "string",
      array: true,
      requiresArg: true,
      describe: "succeeded, failed, permanentlyFailed, cancelled or snoozed",
    },
    fingerprint: { type: "string", requiresArg: true, describe: "A group of 'hathi errors'" },
    since: { type: "string", requiresArg: true, describe: "Ended since then: a date, or how long ago (15m, 2h, 7d)" },
    until: { type: "string", requiresArg: true, describe: "Ended before then" },
    limit: { type: "number", default: 50, describe: "Attempts on a page" },
    after: { type: "string", requiresArg: true, describe: "The next page: the value printed below the page before it" },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1);
    const { task, queue, key, fingerprint } = args;
    const filter = {
      task,
      queue,
      key,
      fingerprint,
      outcome: args.outcome as HistoryOutcome[] | undefined,
      since: args.since === undefined ? undefined : parseMoment("since", args.since, -1),
      until: args.until === undefined ? undefined : parseMoment("until", args.until, -1),
    };
    const page = await withUtils(args, (utils) => utils.listHistory(filter, { limit, after: args.after }));
    if (args.json) return terminal.printJson(page);
    if (page.entries.length === 0) return terminal.note("Nothing is kept that matches.");
    terminal.print(formatHistory(page.entries, terminal));
    if (page.next !== null) terminal.note(`More with --after ${page.next}`);
  },
});
