import { describePause } from "../../index.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatCount, formatMoment } from "../job-table.ts";
import { formatTable } from "../table.ts";
import { withUtils } from "../with-utils.ts";

export const workers = defineCommand({
  command: "workers",
  describe: "List workers that send heartbeats or hold locks",
  flags: { ...databaseFlags, ...jsonFlag },
  async run(args, terminal) {
    const found = await withUtils(args, (utils) => utils.listWorkers());
    if (args.json) return terminal.printJson(found);
    if (found.length === 0) return terminal.note("No worker holds a lock or sends heartbeats.");
    terminal.print(
      formatTable(
        found,
        [
          { title: "WORKER", text: (worker) => worker.id, minWidth: 12 },
          { title: "STATE", text: (worker) => worker.life },
          { title: "PROCESS", text: (worker) => worker.where ?? "", minWidth: 12, drop: 3 },
          { title: "HEARTBEAT", text: (worker) => formatMoment(worker.lastHeartbeatAt), drop: 1 },
          { title: "STARTED", text: (worker) => formatMoment(worker.startedAt), drop: 4 },
          { title: "JOBS", text: (worker) => formatCount(worker.jobs), align: "right" },
          { title: "QUEUES", text: (worker) => formatCount(worker.queues), align: "right", drop: 5 },
          {
            title: "OVERRUNS",
            text: (worker) => (worker.overruns > 0 ? formatCount(worker.overruns) : ""),
            align: "right",
            drop: 0,
          },
          { title: "OLDEST LOCK", text: (worker) => formatMoment(worker.oldestLockAt), drop: 2 },
          {
            title: "PAUSED",
            text: (worker) => (worker.pause ? describePause(worker.pause) : ""),
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
