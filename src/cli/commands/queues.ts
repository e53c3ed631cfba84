import { describePause } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, wholeNumber } from "../flags.ts";
import { formatCount, formatMoment } from "../job-table.ts";
import { formatTable } from "../table.ts";
import { withUtils } from "../with-utils.ts";

export const queues = defineCommand({
  command: "queues",
  describe: "List named queues that are held or have jobs waiting, fullest first",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    limit: { type: "number", default: 50, describe: "Queues at most" },
    search: { type: "string", requiresArg: true, describe: "Part of the name" },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1);
    const found = await withUtils(args, (utils) => utils.listQueues({ limit, search: args.search }));
    if (args.json) return terminal.printJson(found);
    if (found.length === 0) return terminal.note("No queue is held, and none has jobs waiting.");
    terminal.print(
      formatTable(
        found,
        [
          { title: "QUEUE", text: (queue) => queue.queue_name, maxWidth: 40, minWidth: 12 },
          { title: "WAITING", text: (queue) => formatCount(queue.waiting), align: "right" },
          { title: "SCHEDULED", text: (queue) => formatCount(queue.scheduled), align: "right" },
          { title: "NEXT", text: (queue) => formatMoment(queue.next_run_at), drop: 3 },
          { title: "HELD BY", text: (queue) => queue.locked_by ?? "", minWidth: 10, drop: 1 },
          { title: "SINCE", text: (queue) => formatMoment(queue.locked_at), drop: 2 },
          {
            title: "PAUSED",
            text: (queue) => (queue.pause ? describePause(queue.pause) : ""),
            maxWidth: 120,
            minWidth: 10,
            drop: 0,
          },
        ],
        terminal.width,
      ),
    );
  },
});
