import { describePause, type JobStats, type StateCounts, type TaskTimes } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { formatSpan } from "../../util/time-span.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, parseSpan, watchFlags } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import { refreshIf } from "../refresh.ts";
import { type Column, formatTable } from "../table.ts";
import type { Terminal } from "../terminal.ts";
import { withUtils } from "../with-utils.ts";

const shown = 20;

export const stats = defineCommand({
  command: "stats",
  describe: "Count jobs by state, task and queue",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    ...watchFlags,
    since: {
      type: "string",
      requiresArg: true,
      describe: "Also show wait and run times and failures, as far back as this (30m, 1h, 7d)",
    },
    exact: { type: "boolean", default: false, describe: "Count every job, however many there are" },
  },
  async run(args, terminal) {
    const sinceMs = args.since === undefined ? undefined : parseSpan("since", args.since);
    await withUtils(args, (utils) =>
      refreshIf(args, terminal, async (out) => {
        const found = await utils.getJobStats({ exact: args.exact });
        const times = sinceMs === undefined ? undefined : await utils.getJobTimes({ sinceMs });
        if (args.json) out.printJson(times ? { ...found, times } : found);
        else printStats(found, times, out);
      }),
    );
  },
});

function printStats(found: JobStats, times: readonly TaskTimes[] | undefined, terminal: Terminal): void {
  const { counts, tasks, queues, oldestWaiting } = found;
  const { width } = terminal;
  terminal.print(formatTable([{ name: "all jobs", ...counts }], columns(""), width));
  if (tasks.length > 0) terminal.print(`\n${formatTable(named(tasks, "task"), columns("TASK"), width)}`);
  if (queues.length > 0) terminal.print(`\n${formatTable(named(queues, "queue"), columns("QUEUE"), width)}`);
  if (queues.length > shown) terminal.print(`… and ${formatCount(queues.length - shown)} more queues`);
  const oldest = oldestWaiting
    ? `Oldest job waiting: ${oldestWaiting.id} (${printable(oldestWaiting.task_identifier)}), due ${formatSpan(oldestWaiting.waiting_seconds * 1000)} ago.`
    : "No job is waiting that could run.";
  terminal.print(`\n${oldest}`);
  if (times) printTimes(times, terminal);
  for (const pause of found.pauses) terminal.print(`Paused: ${printable(describePause(pause))}`);
  const controlled = describeControlled(found.controlled);
  if (controlled) terminal.print(controlled);
  if (!found.isExact)
    terminal.note("Counts are estimates from a sample, except of running jobs; --exact counts them all.");
}

function printTimes(times: readonly TaskTimes[], terminal: Terminal): void {
  const nothing = "No times were recorded: give workers the option 'metrics', or --metrics-port.";
  terminal.print(`\n${times.length > 0 ? formatTable(times, timeColumns, terminal.width) : nothing}`);
}

const timeColumns: Column<TaskTimes>[] = [
  { title: "TASK", text: ({ task }) => task, maxWidth: 40, minWidth: 12 },
  { title: "ATTEMPTS", align: "right", text: ({ attempts }) => formatCount(attempts) },
  { title: "FAILED", align: "right", text: ({ failureRate }) => `${(failureRate * 100).toFixed(1)} %` },
  ...(["wait", "run"] as const).flatMap((kind) =>
    (["p50", "p95", "p99"] as const).map((share) => ({
      title: `${kind.toUpperCase()} ${share.toUpperCase()}`,
      align: "right" as const,
      text: (times: TaskTimes) => formatTime(times[kind][share]),
    })),
  ),
];

function formatTime(ms: number | null): string {
  if (ms === null) return "";
  if (ms < 1_000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  return ms < 120_000 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;
}

function describeControlled({ cancelled, cancelling, snoozed, overrunning }: JobStats["controlled"]): string {
  const parts = [
    ...(cancelled > 0 ? [`${formatCount(cancelled)} cancelled within a day`] : []),
    ...(cancelling > 0 ? [`${formatCount(cancelling)} stopping`] : []),
    ...(snoozed > 0 ? [`${formatCount(snoozed)} snoozed`] : []),
    ...(overrunning > 0 ? [`${formatCount(overrunning)} overrunning their timeout`] : []),
  ];
  return parts.length > 0 ? `Jobs: ${parts.join(", ")}.` : "";
}

type NamedCounts = StateCounts & { readonly name: string };

function named<Key extends string>(rows: readonly (StateCounts & Record<Key, string>)[], key: Key): NamedCounts[] {
  return rows.slice(0, shown).map((row) => ({ ...row, name: row[key] }));
}

function columns(title: string): Column<NamedCounts>[] {
  const states = ["waiting", "scheduled", "running", "dead", "total"] as const;
  return [
    { title, text: (row) => row.name, maxWidth: 40, minWidth: 12 },
    ...states.map((state) => ({
      title: state.toUpperCase(),
      align: "right" as const,
      text: (row: NamedCounts) => formatCount(row[state]),
    })),
  ];
}
