import { printable, printableMessage } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { paintState } from "../job-table.ts";
import { withUtils } from "../with-utils.ts";

export const why = defineCommand({
  command: "why <id>",
  describe: "Say why a job is not running",
  flags: { ...databaseFlags, ...jsonFlag },
  positionals: { id: { type: "string", demandOption: true, describe: "The job's id" } },
  async run(args, terminal) {
    const explanation = await withUtils(args, (utils) => utils.explainJob(args.id));
    const exitCode = explanation.state === null ? 1 : 0;
    if (args.json) {
      terminal.printJson(explanation);
      return exitCode;
    }
    const { id, state, task, reasons } = explanation;
    if (state !== null)
      terminal.print(`Job ${id} (${printable(task ?? "")}) is ${paintState(state, terminal.colours)}.`);
    for (const { message } of reasons) terminal.print(`${state === null ? "" : "- "}${printableMessage(message)}`);
    return exitCode;
  },
});
