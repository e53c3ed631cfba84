import type { HistoryEntry, JobHistoryEntry } from "../index.ts";
import { printable, printableLines } from "../util/printable.ts";
import { isFrame, isOwnFrame } from "../util/stack-frame.ts";
import { formatSpan } from "../util/time-span.ts";
import { formatMoment } from "./job-table.ts";
import { type Column, formatTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** How attempts ended, as a table for people. */
export function formatHistory(
  entries: readonly HistoryEntry[],
  { colours, width }: Terminal,
  now = Date.now(),
): string {
  const paint: Readonly<Record<string, (text: string) => string>> = {
    succeeded: colours.green,
    failed: colours.yellow,
    permanentlyFailed: colours.red,
  };
  const columns: Column<HistoryEntry>[] = [
    { title: "ID", text: (entry) => entry.id, align: "right" },
    { title: "OUTCOME", text: (entry) => entry.outcome, paint: (cell) => paint[cell.trim()]?.(cell) ?? cell },
    { title: "TASK", text: (entry) => entry.task_identifier, maxWidth: 30, minWidth: 10 },
    { title: "TRY", text: (entry) => String(entry.attempt), align: "right", drop: 1 },
    { title: "ENDED", text: (entry) => formatMoment(entry.settled_at, now) },
    { title: "WAITED", text: (entry) => formatMs(entry.wait_ms), align: "right", drop: 3 },
    { title: "RAN", text: (entry) => formatMs(entry.run_ms), align: "right", drop: 2 },
    { title: "QUEUE", text: (entry) => entry.queue_name ?? "", maxWidth: 20, minWidth: 8, drop: 4 },
    { title: "KEY", text: (entry) => entry.key ?? "", maxWidth: 20, minWidth: 8, drop: 5 },
    { title: "WORKER", text: (entry) => entry.worker_id, maxWidth: 24, minWidth: 8, drop: 6 },
    { title: "ERROR", text: (entry) => entry.error ?? "", maxWidth: 40, minWidth: 15, drop: 0 },
  ];
  return formatTable(entries, columns, width);
}

/** Where the latest failure was thrown; frames of packages and of Node are faint. Undefined if no stack is kept. */
export function formatLastStack(entries: readonly JobHistoryEntry[], { colours }: Terminal): string | undefined {
  const failure = entries.findLast(({ stack }) => stack !== null);
  if (!failure) return undefined;
  const lines = printableLines(failure.stack!).split("\n");
  return [
    `${colours.dim(`Attempt ${failure.attempt} failed:`)} ${printable(failure.error_class ?? "Error")}`,
    ...lines.map((line) => (isFrame(line) && !isOwnFrame(line) ? colours.dim(line) : line)),
  ].join("\n");
}

function formatMs(ms: number): string {
  return ms < 10_000 ? `${ms} ms` : formatSpan(ms);
}
