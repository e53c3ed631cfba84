import { getTasks, type PayloadReport } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag, wholeNumber } from "../flags.ts";
import { formatCount } from "../job-table.ts";
import type { Terminal } from "../terminal.ts";
import { withUtils } from "../with-utils.ts";

export const check = defineCommand({
  command: "check",
  describe: "Check whether the jobs that wait fit the task definitions of this build; before a deploy",
  flags: {
    ...databaseFlags,
    ...jsonFlag,
    limit: { type: "number", default: 100, describe: "Jobs to list at most; all are checked" },
  },
  async run(args, terminal) {
    const limit = wholeNumber("limit", args.limit, 1)!;
    const report = await withUtils(args, async (utils, { options }) => {
      const { tasks } = await getTasks(options);
      const onProgress = (checked: number): void => terminal.progress(`${formatCount(checked)} jobs checked…`);
      return utils.checkPayloads(tasks, { limit, onProgress });
    });
    terminal.clearProgress();
    if (args.json) terminal.printJson(report);
    else describe(report, terminal);
    return report.unfit === 0 ? 0 : 1;
  },
});

function describe({ checked, unfit, jobs, unchecked }: PayloadReport, terminal: Terminal): void {
  const { red, green } = terminal.colours;
  for (const { id, task, key, issues } of jobs) {
    terminal.print(`${red("✗")} job ${id} (${printable(`${task}${key === null ? "" : `, key '${key}'`}`)})`);
    for (const { path, message } of issues)
      terminal.print(printable(`    ${path === "" ? "payload" : path}: ${message}`));
  }
  if (unfit > jobs.length) terminal.print(`  and ${formatCount(unfit - jobs.length)} more; raise --limit to see them.`);
  for (const { task_identifier, jobs: count } of unchecked) {
    terminal.note(`Not checked: ${jobsOf(count)} of '${printable(task_identifier)}', which has no definition here.`);
  }
  const verdict = unfit === 0 ? "all fit" : `${formatCount(unfit)} would fail`;
  terminal.print(`${unfit === 0 ? green("✓") : red("✗")} ${jobsOf(checked)} checked: ${verdict}.`);
}

function jobsOf(count: number): string {
  return `${formatCount(count)} ${count === 1 ? "job" : "jobs"}`;
}
