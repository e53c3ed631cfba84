import yargs from "yargs";
import { suggestion } from "../util/nearest.ts";
import { printableLines } from "../util/printable.ts";
import { version } from "../version.ts";
import { type Command, register } from "./command.ts";
import { commandNames, loadCommands } from "./commands.ts";
import { describeFailure } from "./report-failure.ts";
import { openTerminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

/** Understands the arguments, does what they say, and gives the code to exit with. */
export async function runProgram(args: readonly string[]): Promise<number> {
  const terminal = openTerminal();
  try {
    const commands = await loadCommands(args);
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
        throw new UsageError(describeMisuse(error?.message ?? message, args, commands));
      });
    for (const command of commands) {
      register(program, command, terminal, (code) => {
        exitCode = code;
      });
    }
    await program.parseAsync();
    return exitCode;
  } catch (error) {
    const failure = describeFailure(error);
    terminal.clearProgress();
    terminal.note(printableLines(failure.message));
    return failure.exitCode;
  }
}

/** What other programs call it, though it is spelt nothing like ours. */
const usualWords: Readonly<Record<string, string>> = {
  start: "run",
  work: "run",
  worker: "run",
  dev: "run",
  enqueue: "add",
  jobs: "list",
  status: "stats",
  ui: "dashboard",
  delete: "complete",
  rm: "complete",
  kill: "cancel",
};

/** Where a word goes that was given without its flag. */
const placeOfSpareWord: Readonly<Record<string, string>> = {
  add: `The payload goes into --payload, such as --payload '{"name":"Ada"}'.`,
  pause: "Name what to pause with --task, --queue, --worker or --cron.",
  resume: "Name what to resume with --task, --queue, --worker or --cron.",
  list: "Choose jobs with --task, --queue, --state, --key or --search.",
};

/** yargs names what it does not know, but not what may have been meant; and it counts what is missing instead of naming it. */
function describeMisuse(message: string, args: readonly string[], commands: readonly Command[]): string {
  const name = args.find((word) => commandNames.includes(word));
  const help = `(see hathi ${name === undefined ? "" : `${name} `}--help)`;
  if (message.startsWith("Not enough non-option arguments") && commands.length === 1) {
    return `Something is missing: hathi ${[commands[0]!.command].flat()[0]} ${help}`;
  }
  const isSpare = (word: string): boolean => word !== name && !word.startsWith("-") && message.includes(`: ${word}`);
  if (name !== undefined && Object.hasOwn(placeOfSpareWord, name) && message.startsWith("Unknown")) {
    if (args.some(isSpare)) return `${message}. ${placeOfSpareWord[name]} ${help}`;
  }
  const [, word] = /^Unknown arguments?: ([\w-]+)/.exec(message) ?? [];
  if (word === undefined) return `${message} ${help}`;
  const flags = commands.flatMap((command) => Object.entries(command.flags));
  const names = flags.flatMap(([flag, { alias = [] }]) => [flag, ...[alias].flat().filter((each) => each.length > 1)]);
  const isFlag = args.some((each) => each.startsWith(`--${word}`));
  const known = isFlag ? names : [...commandNames, ...names];
  const what = word === args[0] ? `Unknown command: ${word}` : message;
  const usual =
    word === args[0] && Object.hasOwn(usualWords, word) ? ` Did you mean '${usualWords[word]}'?` : undefined;
  return `${what}.${usual ?? suggestion(word, known)} ${help}`;
}
