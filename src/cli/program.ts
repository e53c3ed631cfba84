import yargs from "yargs";
import { suggestion } from "../util/nearest.ts";
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
    .parserConfiguration({ "boolean-negation": false, "greedy-arrays": false, "parse-positional-numbers": false })
    .locale("en")
    .wrap(Math.min(110, process.stdout.columns ?? 100))
    .exitProcess(false)
    .showHelpOnFail(false)
    .fail((message, error) => {
      // yargs' own errors are the user's mistakes too.
      if (error && error.name !== "YError") throw error;
      throw new UsageError(`${withSuggestion(error?.message ?? message)} (see hathi --help)`);
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

const words = commands.flatMap(({ command, flags }) => [
  String(typeof command === "string" ? command : command[0]).split(" ")[0]!,
  ...Object.keys(flags),
]);

/** yargs names what it does not know, but not what may have been meant. */
function withSuggestion(message: string): string {
  const [, word] = /^Unknown arguments?: ([\w-]+)/.exec(message) ?? [];
  return word === undefined ? message : `${message}.${suggestion(word, words)}`;
}
