import type { ListedJob, ReportedProgress } from "../index.ts";
import { formatSpan } from "../util/time-span.ts";
import { type Column, formatTable } from "./table.ts";
import type { Terminal } from "./terminal.ts";

/** Jobs as a table for people. */
export function formatJobs(jobs: readonly ListedJob[], { colours, width }: Terminal, now = Date.now()): string {
  const columns: Column<ListedJob>[] = [
    { title: "ID", text: (job) => job.id, align: "right" },
    {
      title: "STATE",
      text: describeState,
      paint: (state) => paintState(state, colours),
    },
    { title: "TASK", text: (job) => job.task_identifier, maxWidth: 30, minWidth: 10 },
    { title: "QUEUE", text: (job) => job.queue_name ?? "", maxWidth: 20, minWidth: 8, drop: 3 },
    { title: "PRIO", text: (job) => String(job.priority), align: "right", drop: 4 },
    { title: "TRIES", text: (job) => `${job.attempts}/${job.max_attempts}`, align: "right", drop: 1 },
    ...(jobs.some(({ progress }) => progress)
      ? [
          {
            title: "PROGRESS",
            text: (job: ListedJob) => describeProgress(job.progress),
            maxWidth: 30,
            minWidth: 8,
            drop: 3,
          },
        ]
      : []),
    // A dead job does not run again, whatever its row says.
    { title: "RUN AT", text: (job) => (job.state === "dead" ? "" : formatMoment(job.run_at, now)), drop: 2 },
    { title: "KEY", text: (job) => job.key ?? "", maxWidth: 20, minWidth: 8, drop: 5 },
    { title: "LAST ERROR", text: (job) => job.last_error ?? "", maxWidth: 40, minWidth: 15, drop: 0 },
  ];
  return formatTable(jobs, columns, width);
}

function describeState({ state, cancelled_at, overrunning_since, pause }: ListedJob): string {
  if (cancelled_at) return "cancelling";
  return [state, ...(overrunning_since ? ["overrunning"] : []), ...(pause ? ["paused"] : [])].join(", ");
}

/** `40 %`, `3 of 10 (30 %)`, with its note. */
export function describeProgress(progress: ReportedProgress | null): string {
  if (!progress) return "";
  const { done, total, note } = progress;
  const share = total ? `${Math.floor((done / total) * 100)} %` : "";
  const amount = total === null ? formatCount(done) : `${formatCount(done)} of ${formatCount(total)} (${share})`;
  return `${total === 1 ? share : amount}${note ? `: ${note}` : ""}`;
}

export function paintState(state: string, colours: Terminal["colours"]): string {
  const paint = { waiting: colours.green, scheduled: colours.cyan, running: colours.yellow, dead: colours.red }[state];
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
