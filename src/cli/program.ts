import yargs from "yargs";
import { version } from "../version.ts";
import { register } from "./command.ts";
import { commands } from "./commands.ts";
import { describeFailure } from "./report-failure.ts";
import { openTerminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

/** Understands the arguments, does what they say, and gives the code to exit with. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const terminal = openTerminal();
  let exitCode = 0;
  const program = yargs([...args])
    .scriptName("hathi")
    .usage("$0 [command] [flags]")
    .version(version)
    .help()
    .alias("help", "h")
    .strict()
    .recommendCommands()
    .parserConfiguration({ "boolean-negation": false, "greedy-arrays": false, "parse-positional-numbers": false })
    .locale("en")
    .wrap(Math.min(110, process.stdout.columns ?? 100))
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      throw error ?? new UsageError(`${message} (see hathi --help)`);
    });
  for (const command of commands) {
    register(program, command, terminal, (code) => {
      exitCode = code;
    });
  }
  try {
    await program.parseAsync();
    return exitCode;
  } catch (error) {
    const failure = describeFailure(error);
    terminal.clearProgress();
    terminal.note(failure.message);
    return failure.exitCode;
  }
}
