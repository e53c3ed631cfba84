import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatCount, formatMoment } from "../job-table.ts";
import { withQueue } from "../open-queue.ts";
import { formatTable } from "../table.ts";

export const workers = defineCommand({
  command: "workers",
  describe: "List workers that give signs of life or hold locks",
  flags: { ...databaseFlags, ...jsonFlag },
  async run(args, terminal) {
    const found = await withQueue(args, (queue) => queue.listWorkers());
    if (args.json) return terminal.printJson(found);
    if (found.length === 0) return terminal.note("No worker holds a lock or gives signs of life.");
    terminal.print(
      formatTable(found, [
        { title: "WORKER", text: (worker) => worker.id },
        { title: "LIFE", text: (worker) => worker.life },
        { title: "PROCESS", text: (worker) => worker.where ?? "" },
        { title: "LAST SIGN", text: (worker) => formatMoment(worker.lastHeartbeatAt) },
        { title: "STARTED", text: (worker) => formatMoment(worker.startedAt) },
        { title: "JOBS", text: (worker) => formatCount(worker.jobs), align: "right" },
        { title: "QUEUES", text: (worker) => formatCount(worker.queues), align: "right" },
        { title: "OLDEST LOCK", text: (worker) => formatMoment(worker.oldestLockAt) },
      ]),
    );
  },
});
