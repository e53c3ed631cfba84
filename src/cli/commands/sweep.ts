import { describeSweep, type SweepResult } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseSpan } from "../flags.ts";
import { formatTable } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { withUtils } from "../with-utils.ts";

export const sweep = defineCommand({
  command: ["sweep", "sweep-stale-workers"],
  describe: "Recover the jobs of dead workers",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    "dry-run": {
      type: "boolean",
      default: false,
      describe: "List the dead workers and their jobs, and change nothing",
    },
    "sweep-threshold": {
      type: "string",
      requiresArg: true,
      describe: "A worker without a heartbeat for this long is dead (default: the config's, or 5m)",
    },
    "recovery-delay": {
      type: "string",
      requiresArg: true,
      describe: "How long recovered jobs wait before they run again (default: the config's, or 30s)",
    },
  },
  async run(args, terminal) {
    const dryRun = args["dry-run"];
    const threshold = args["sweep-threshold"];
    const delay = args["recovery-delay"];
    const options = {
      dryRun,
      ...(threshold !== undefined && { sweepThreshold: parseSpan("sweep-threshold", threshold) }),
      ...(delay !== undefined && { recoveryDelay: parseSpan("recovery-delay", delay) }),
    };
    const result = await withUtils(args, (utils) => utils.sweepStaleWorkers(options));
    if (args.json) terminal.printJson(result);
    else describe(result, dryRun, terminal);
  },
});

function describe(result: SweepResult, dryRun: boolean, terminal: Terminal): void {
  if (!result.isDone) {
    terminal.note("Another sweep is under way; this one changed nothing.");
    return;
  }
  if (result.workers.length === 0) terminal.print("No worker is dead.");
  for (const sentence of describeSweep(result, dryRun)) terminal.print(printable(sentence));
  if (result.jobs.length === 0) return;
  terminal.print(
    formatTable(
      result.jobs,
      [
        { title: "ID", text: (job) => job.id, align: "right" },
        { title: "TASK", text: (job) => job.task, minWidth: 10 },
        { title: "WORKER", text: (job) => job.workerId, minWidth: 10, drop: 1 },
        { title: "OUTCOME", text: (job) => (dryRun ? "would be recovered" : job.outcome) },
      ],
      terminal.width,
    ),
  );
}
