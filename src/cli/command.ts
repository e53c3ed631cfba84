import { inspect } from "node:util";
import type { Argv, InferredOptionTypes, Options, PositionalOptions } from "yargs";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

type Flags = { readonly [name: string]: Options };
type Positionals = { readonly [name: string]: PositionalOptions & Options };

/** One verb of the program. `run` gives the exit code, or nothing for 0. */
export interface Command<F extends Flags = Flags, P extends Positionals = Positionals> {
  /** The verb and its positional arguments, as yargs writes them. */
  readonly command: string | readonly string[];
  readonly describe: string;
  readonly flags: F;
  readonly positionals?: P;
  run(args: InferredOptionTypes<F> & InferredOptionTypes<P>, terminal: Terminal): Promise<number | void>;
}

/** A command whose `run` knows the types of its flags. */
export function defineCommand<F extends Flags, P extends Positionals = Record<never, never>>(
  command: Command<F, P>,
): Command {
  return command as unknown as Command;
}

/** Tells yargs of a command. */
export function register(program: Argv, command: Command, terminal: Terminal, onEnd: (exitCode: number) => void): Argv {
  return program.command(
    command.command,
    command.describe,
    (yargs) => {
      for (const [name, options] of Object.entries(command.positionals ?? {})) yargs.positional(name, options);
      for (const [name, options] of Object.entries(command.flags)) yargs.option(name, checked(name, options));
      return yargs;
    },
    async (args) => onEnd((await command.run(args as never, terminal)) ?? 0),
  );
}

/** If a flag is given twice, the last one counts, unless it is one that gathers. */
function checked(name: string, options: Options): Options {
  if (options.array || options.coerce) return options;
  const last = (value: unknown): unknown => (Array.isArray(value) ? value.at(-1) : value);
  if (options.type !== "number") return { ...options, coerce: last };
  // yargs would turn what is not a number into NaN, and the message could not name it.
  const { type: _, ...untyped } = options;
  return { ...untyped, coerce: (value: unknown) => checkNumber(name, last(value)) };
}

function checkNumber(name: string, value: unknown): unknown {
  if (value === undefined || typeof value === "number") return value;
  throw new UsageError(`--${name} must be a number, got ${inspect(value)}.`);
}
