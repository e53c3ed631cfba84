import pc from "picocolors";
import { maxTextBytes } from "./error-text.ts";
import { type Meta, metaFields, metaText } from "./log-meta.ts";
import type { LogFunctionFactory, LogLevel, LogScope } from "./logger.ts";
import { clip } from "./util/clip.ts";
import { printable, printableMessage } from "./util/printable.ts";

/** `auto` is text in a terminal and JSON elsewhere. */
export type LogFormat = "text" | "json" | "auto";

/** Debug messages are shown only when asked for, as Graphile Worker has it. */
const showsDebug = (): boolean => Boolean(process.env.GRAPHILE_LOGGER_DEBUG || process.env.GRAPHILE_WORKER_DEBUG);

/** Makes the log function for a `Logger`: lines for people, or one JSON object per line for programs. `auto` is text in a terminal and JSON elsewhere. */
export function makeLogFactory(format: LogFormat): LogFunctionFactory {
  const isJson = format === "json" || (format === "auto" && !process.stdout.isTTY);
  const write = isJson ? writeJson : writeText;
  return (scope) => (level, message, meta) => {
    if (level !== "debug" || showsDebug()) write(scope, level, message, meta);
  };
}

function writeJson(scope: Partial<LogScope>, level: LogLevel, message: string, meta: Meta): void {
  const line = { time: new Date().toISOString(), level, message: clip(message, maxTextBytes), ...scope };
  process.stdout.write(`${JSON.stringify({ ...line, ...metaFields(meta) })}\n`);
}

function writeText(scope: Partial<LogScope>, level: LogLevel, message: string, meta: Meta): void {
  const stream = level === "error" || level === "warning" ? process.stderr : process.stdout;
  const colours = pc.createColors(pc.isColorSupported && stream.isTTY === true);
  const time = colours.dim(new Date().toTimeString().slice(0, 8));
  const job = scope.jobId ? colours.dim(`{${scope.jobId}}`) : "";
  const source = scope.taskIdentifier
    ? colours.cyan(printable(scope.taskIdentifier)) + job
    : colours.dim(scope.label ?? "core");
  const text = printableMessage(clip(message, maxTextBytes) + metaText(message, meta));
  stream.write(`${time} ${paint(level, colours)} ${source} ${text}\n`);
}

function paint(level: LogLevel, colours: ReturnType<typeof pc.createColors>): string {
  switch (level) {
    case "error":
      return colours.red("ERROR");
    case "warning":
      return colours.yellow("WARN ");
    case "debug":
      return colours.gray("DEBUG");
    default:
      return colours.green("INFO ");
  }
}
