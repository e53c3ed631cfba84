import type { StateCounts } from "../../admin/job-stats.ts";
import { formatSpan } from "../../util/time-span.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import { withQueue } from "../open-queue.ts";
import { type Column, formatTable } from "../table.ts";

const shown = 20;

export const stats = defineCommand({
  command: "stats",
  describe: "Count jobs by state, task and queue",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    exact: { type: "boolean", default: false, describe: "Count every job, however many there are" },
  },
  async run(args, terminal) {
    const found = await withQueue(args, (queue) => queue.getJobStats({ exact: args.exact }));
    if (args.json) return terminal.printJson(found);
    const { counts, tasks, queues, oldestReady } = found;
    terminal.print(formatTable([{ name: "all jobs", ...counts }], columns("")));
    if (tasks.length > 0) terminal.print(`\n${formatTable(named(tasks, "task"), columns("TASK"))}`);
    if (queues.length > 0) terminal.print(`\n${formatTable(named(queues, "queue"), columns("QUEUE"))}`);
    if (queues.length > shown) terminal.print(`… and ${formatCount(queues.length - shown)} more queues`);
    const oldest = oldestReady
      ? `Oldest job waiting: ${oldestReady.id} (${oldestReady.task_identifier}), due ${formatSpan(oldestReady.waiting_seconds * 1000)} ago.`
      : "No job is waiting that could run.";
    terminal.print(`\n${oldest}`);
    if (!found.isExact)
      terminal.note("Counts are estimates from a sample, except of running jobs; --exact counts them all.");
  },
});

type NamedCounts = StateCounts & { readonly name: string };

function named<Key extends string>(rows: readonly (StateCounts & Record<Key, string>)[], key: Key): NamedCounts[] {
  return rows.slice(0, shown).map((row) => ({ ...row, name: row[key] }));
}

function columns(title: string): Column<NamedCounts>[] {
  const states = ["ready", "scheduled", "running", "failed", "total"] as const;
  return [
    { title, text: (row) => row.name, maxWidth: 40 },
    ...states.map((state) => ({
      title: state.toUpperCase(),
      align: "right" as const,
      text: (row: NamedCounts) => formatCount(row[state]),
    })),
  ];
}
