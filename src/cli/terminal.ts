import { createInterface } from "node:readline/promises";
import pc from "picocolors";
import { printable } from "../util/printable.ts";
import { UsageError } from "./usage-error.ts";

/** Where the program talks to a person or to another program. */
export interface Terminal {
  readonly colours: ReturnType<typeof pc.createColors>;
  /** Characters in a line; no limit where a program reads. */
  readonly width: number;
  /** A person watches, and may press keys. */
  readonly isInteractive: boolean;
  /** One line for the reader. */
  print(line: string): void;
  /** A value for a program to read. */
  printJson(value: unknown): void;
  /** One line that is not part of the answer. */
  note(line: string): void;
  /** Asks a question that takes yes or no; without a person to ask, the way out is to say `--yes`. */
  confirm(question: string): Promise<boolean>;
  /** Shows how far a long work is; overwrites itself in a terminal and keeps silent elsewhere. */
  progress(text: string): void;
  /** Takes the progress away. */
  clearProgress(): void;
}

export function openTerminal(): Terminal {
  const colours = pc.createColors(pc.isColorSupported && process.stdout.isTTY === true);
  let hasProgress = false;
  const clearProgress = (): void => {
    if (hasProgress) process.stderr.write("\r\x1b[K");
    hasProgress = false;
  };
  return {
    colours,
    // It may be resized at any time.
    get width() {
      return (process.stdout.isTTY && process.stdout.columns) || Number.POSITIVE_INFINITY;
    },
    isInteractive: process.stdout.isTTY === true,
    print: (line) => answer(`${line}\n`),
    printJson: (value) => answer(`${JSON.stringify(value, null, process.stdout.isTTY ? 2 : 0)}\n`),
    note: (line) => void process.stderr.write(`${line}\n`),
    async confirm(text) {
      const question = printable(text);
      if (!process.stdin.isTTY) throw new UsageError(`${question} There is no terminal to ask: repeat with --yes.`);
      const reader = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return /^y(es)?$/i.test((await reader.question(`${question} [y/N] `)).trim());
      } finally {
        reader.close();
      }
    },
    progress(text) {
      if (!process.stderr.isTTY) return;
      clearProgress();
      process.stderr.write(text);
      hasProgress = true;
    },
    clearProgress,
  };
}

/** A reader that has seen enough, such as `head`, is no reason to complain. */
function endWhenNobodyReads(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
}

function answer(text: string): void {
  if (!process.stdout.listeners("error").includes(endWhenNobodyReads)) process.stdout.on("error", endWhenNobodyReads);
  process.stdout.write(text);
}
