import type { ListedJob } from "../admin/list-jobs.ts";
import { formatSpan } from "../util/time-span.ts";
import { formatTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** Jobs as a table for people. */
export function formatJobs(jobs: readonly ListedJob[], { colours }: Terminal, now = Date.now()): string {
  return formatTable(jobs, [
    { title: "ID", text: (job) => job.id, align: "right" },
    { title: "STATE", text: (job) => paintState(job.state, colours) },
    { title: "TASK", text: (job) => job.task_identifier, maxWidth: 30 },
    { title: "QUEUE", text: (job) => job.queue_name ?? "", maxWidth: 20 },
    { title: "PRIO", text: (job) => String(job.priority), align: "right" },
    { title: "TRIES", text: (job) => `${job.attempts}/${job.max_attempts}`, align: "right" },
    { title: "RUN AT", text: (job) => formatMoment(job.run_at, now) },
    { title: "KEY", text: (job) => job.key ?? "", maxWidth: 20 },
    { title: "LAST ERROR", text: (job) => job.last_error ?? "", maxWidth: 40 },
  ]);
}

export function paintState(state: string, colours: Terminal["colours"]): string {
  const paint = { ready: colours.green, scheduled: colours.cyan, running: colours.yellow, failed: colours.red }[state];
  return paint ? paint(state) : state;
}

/** A moment as its distance, which is what one wants to know. */
export function formatMoment(moment: Date | null, now = Date.now()): string {
  if (!moment) return "";
  const distance = moment.getTime() - now;
  return distance > 0 ? `in ${formatSpan(distance)}` : `${formatSpan(distance)} ago`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-GB");
}
