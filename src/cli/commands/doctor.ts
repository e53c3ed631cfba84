import type { CheckUp } from "../../index.ts";
import { printable } from "../../util/printable.ts";
import { defineCommand } from "../command.ts";
import { databaseFlags, jsonFlag } from "../flags.ts";
import { withUtils } from "../with-utils.ts";

export const doctor = defineCommand({
  command: "doctor",
  describe: "Check the database for what slows down or stops jobs",
  flags: { ...databaseFlags, ...jsonFlag },
  async run(args, terminal) {
    const checkUps = await withUtils(args, (utils) => utils.examineHealth());
    const { green, yellow, red } = terminal.colours;
    const marks: Record<CheckUp["status"], string> = {
      ok: green("ok     "),
      warning: yellow("warning"),
      problem: red("problem"),
    };
    if (args.json) terminal.printJson(checkUps);
    else
      for (const { name, status, message } of checkUps)
        terminal.print(`${marks[status]}  ${name.padEnd(20)} ${printable(message)}`);
    return checkUps.some(({ status }) => status === "problem") ? 1 : 0;
  },
});
