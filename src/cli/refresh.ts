import { stripVTControlCharacters } from "node:util";
import { sleep } from "../util/sleep.ts";
import { describeFailure } from "./report-failure.ts";
import type { Terminal } from "./terminal.ts";
import { UsageError } from "./usage-error.ts";

interface RefreshOptions {
  readonly seconds: number;
  /** Prints one snapshot. */
  readonly show: (terminal: Terminal) => Promise<void>;
}

/** Shows it once, or again and again with `--watch`. */
export async function refreshIf(
  { watch, interval }: { readonly watch: boolean; readonly interval: number },
  terminal: Terminal,
  show: RefreshOptions["show"],
): Promise<void> {
  if (!watch) return await show(terminal);
  if (!(interval >= 0.1 && interval <= 86_400))
    throw new UsageError(`--interval must be a number of seconds from 0.1 up, got ${interval}.`);
  await refresh(terminal, { seconds: interval, show });
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Shows the same again and again until a signal, or `q` in a terminal, ends it. In a terminal the screen is redrawn in place, as `top` does, and an
 * unreachable database is waited for; elsewhere one snapshot follows the other, and an error ends it.
 */
async function refresh(terminal: Terminal, { seconds, show }: RefreshOptions): Promise<void> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  for (const signal of signals) process.once(signal, stop);
  let screen: Screen | undefined;
  try {
    while (!end.signal.aborted) {
      if (terminal.isInteractive) {
        // What fails at once is a mistake, and not an outage.
        const lines = await snapshot(terminal, seconds, show, screen === undefined);
        screen ??= openScreen(stop);
        screen.draw(lines);
      } else await show(terminal);
      await sleep(seconds * 1000, end.signal);
    }
  } finally {
    screen?.close();
    for (const signal of signals) process.off(signal, stop);
  }
}

/** What one snapshot would print, as lines. */
async function snapshot(
  terminal: Terminal,
  seconds: number,
  show: RefreshOptions["show"],
  isFirst: boolean,
): Promise<string[]> {
  const { colours } = terminal;
  const printed: string[] = [];
  const print = (text: string): void => void printed.push(...text.split("\n"));
  const head = `${new Date().toLocaleTimeString("en-GB")}, every ${seconds} s; q ends this.`;
  try {
    const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));
    await show({ ...terminal, print, printJson, note: (line) => print(colours.dim(line)) });
  } catch (error) {
    if (isFirst) throw error;
    print(colours.red(describeFailure(error).message));
  }
  return [colours.dim(head), "", ...printed];
}

interface Screen {
  draw(lines: readonly string[]): void;
  close(): void;
}

/** Another screen, so that what was there before comes back in the end. Raw, because `q` comes without an Enter. */
function openScreen(onQuit: () => void): Screen {
  const { stdin, stdout } = process;
  const onKey = (key: Buffer): void => {
    // Ctrl-C is a key here, and no signal.
    if (["q", "Q", "\x03"].includes(key.toString())) onQuit();
  };
  stdout.write("\x1b[?1049h\x1b[?25l");
  if (stdin.isTTY) stdin.setRawMode(true).on("data", onKey);
  return {
    draw(lines) {
      const { rows, columns } = stdout;
      const shown =
        lines.length > rows ? [...lines.slice(0, rows - 2), `… ${lines.length - rows + 2} lines more`] : lines;
      // A line that wraps would push the others down.
      const fitted = shown.map((line) => (stripVTControlCharacters(line).length > columns ? cut(line, columns) : line));
      stdout.write(`\x1b[H${fitted.map((line) => `${line}\x1b[K`).join("\r\n")}\x1b[J`);
    },
    close() {
      if (stdin.isTTY) stdin.off("data", onKey).setRawMode(false).pause();
      stdout.write("\x1b[?25h\x1b[?1049l");
    },
  };
}

function cut(line: string, columns: number): string {
  return `${stripVTControlCharacters(line).slice(0, columns - 1)}…`;
}
