import type { ShownJob } from "../../admin/list-jobs.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { formatMoment, paintState } from "../job-table.ts";
import { withQueue } from "../open-queue.ts";
import type { Terminal } from "../terminal.ts";
import { UsageError } from "../usage-error.ts";

export const show = defineCommand({
  command: "show <id>",
  describe: "Show everything about one job",
  flags: { ...databaseFlags, ...jsonFlag },
  positionals: { id: { type: "string", demandOption: true, describe: "The job's id" } },
  async run(args, terminal) {
    const job = await withQueue(args, (queue) => queue.getJob(args.id));
    if (!job) throw new UsageError(`There is no job ${args.id}: it was completed, removed, or never added.`);
    if (args.json) terminal.printJson(job);
    else terminal.print(describeJob(job, terminal));
  },
});

function describeJob(job: ShownJob, { colours }: Terminal): string {
  const moment = (date: Date | null): string => (date ? `${date.toISOString()} (${formatMoment(date)})` : "");
  const lines: [string, string | null][] = [
    ["id", job.id],
    ["state", paintState(job.state, colours)],
    ["task", job.task_identifier],
    ["queue", job.queue_name],
    ["key", job.key],
    ["priority", String(job.priority)],
    ["attempts", `${job.attempts} of ${job.max_attempts}`],
    ["run at", moment(job.run_at)],
    ["added", moment(job.created_at)],
    ["changed", moment(job.updated_at)],
    ["revision", String(job.revision)],
    ["flags", job.flags && Object.keys(job.flags).join(", ")],
    ["locked by", job.locked_by],
    ["locked at", moment(job.locked_at)],
    ["last error", job.last_error],
    ["payload", JSON.stringify(job.payload, null, 2)],
  ];
  return lines
    .filter(([, value]) => value)
    .map(([name, value]) => `${colours.dim(`${name}:`.padEnd(12))}${value!.replaceAll("\n", `\n${" ".repeat(12)}`)}`)
    .join("\n");
}
