import { describePause, type FinishedJob, type JobLinks, type LinkedJob, type PresentJob } from "../../index.ts";
import { printable, printableLines } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatHistory, formatLastStack } from "../history-table.ts";
import { describeProgress, formatMoment, paintState } from "../job-table.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";
import { withUtils } from "../with-utils.ts";

export const show = defineCommand({
  command: "show <id>",
  describe: "Show everything about one job",
  flags: { ...databaseFlags, ...jsonFlag },
  positionals: { id: { type: "string", demandOption: true, describe: "The job's id" } },
  async run(args, terminal) {
    const [job, links] = await withUtils(args, async (utils) => {
      const found = await utils.getJob(args.id);
      return [found, found && (await utils.getJobLinks(args.id))];
    });
    if (!job || !links)
      throw new UsageError(
        `There is no job ${args.id}: it was completed (and history is off or has expired), cancelled, removed, or never added. To see which: hathi why ${args.id}`,
      );
    if (args.json) terminal.printJson({ ...job, links });
    else {
      const lines = job.state === "finished" ? finishedLines(job) : presentLines(job);
      terminal.print(layOut([...lines, ...linkLines(links)], terminal));
      if (job.history.length > 0) terminal.print(`\n${formatHistory(job.history, terminal)}`);
      const stack = formatLastStack(job.history, terminal);
      if (stack !== undefined) terminal.print(`\n${stack}`);
    }
  },
});

type Lines = [string, string | null][];

const moment = (date: Date | null): string => (date ? `${date.toISOString()} (${formatMoment(date)})` : "");

/** A job that is gone. */
function finishedLines(job: FinishedJob): Lines {
  return [
    ["id", job.id],
    ["state", `finished (${job.outcome})`],
    ["task", job.task_identifier],
    ["queue", job.queue_name],
    ["key", job.key],
    ["finished", moment(job.finished_at)],
    ["result", job.result === null ? null : JSON.stringify(job.result, null, 2)],
    ["payload", job.payload === null ? null : JSON.stringify(job.payload, null, 2)],
  ];
}

/** What added it, and what it has added. */
function linkLines({ added_by, added, has_more }: JobLinks): Lines {
  const say = ({ id, task_identifier: task, state, outcome }: LinkedJob): string =>
    `${id}${task === null ? "" : ` ${task}`} (${outcome ?? state ?? "gone"})`;
  return [
    ["added by", added_by.map(say).join(", ")],
    ["it added", [...added.map(say), ...(has_more ? ["…"] : [])].join(", ")],
  ];
}

function presentLines(job: PresentJob): Lines {
  return [
    ["id", job.id],
    ["state", job.state],
    ["task", job.task_identifier],
    ["queue", job.queue_name],
    ["paused", job.pause && describePause(job.pause)],
    ["key", job.key],
    ["priority", String(job.priority)],
    ["attempts", `${job.attempts} of ${job.max_attempts}`],
    ["progress", job.progress && `${describeProgress(job.progress)}, ${formatMoment(job.progress.reported_at)}`],
    ["snoozed", job.snoozes > 0 ? `${job.snoozes} times` : null],
    ["run at", job.state === "dead" ? job.run_at.toISOString() : moment(job.run_at)],
    ["added", moment(job.created_at)],
    ["changed", moment(job.updated_at)],
    ["revision", String(job.revision)],
    ["flags", job.flags && Object.keys(job.flags).join(", ")],
    ["locked by", job.locked_by],
    ["locked at", moment(job.locked_at)],
    ["cancelled", moment(job.cancelled_at)],
    ["overruns", job.overrunning_since && `since ${moment(job.overrunning_since)}`],
    ["last error", job.last_error],
    ["payload", JSON.stringify(job.payload, null, 2)],
  ];
}

function layOut(lines: Lines, { colours }: Terminal): string {
  return lines
    .filter(([, value]) => value)
    .map(([name, value]) => `${colours.dim(`${name}:`.padEnd(12))}${describeValue(name, value!, colours)}`)
    .join("\n");
}

/** Only an error and a payload may have several lines, which stay in their column. */
function describeValue(name: string, value: string, colours: Terminal["colours"]): string {
  if (name === "state") return paintState(value, colours);
  if (!["last error", "payload", "result"].includes(name)) return printable(value);
  return printableLines(value).replaceAll("\n", `\n${" ".repeat(12)}`);
}
