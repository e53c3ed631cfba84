import pc from "picocolors";
import type { LogFunctionFactory, LogLevel, LogScope } from "../logger.ts";

/** `auto` is text in a terminal and JSON elsewhere. */
export const logFormats = ["text", "json", "auto"] as const;
export type LogFormat = (typeof logFormats)[number];

/** Debug messages are shown only when asked for, as Graphile Worker has it. */
const showsDebug = (): boolean => Boolean(process.env.GRAPHILE_LOGGER_DEBUG || process.env.GRAPHILE_WORKER_DEBUG);

/** Writes log lines for people, or one JSON object per line for programs. */
export function makeLogFactory(format: LogFormat): LogFunctionFactory {
  const isJson = format === "json" || (format === "auto" && !process.stdout.isTTY);
  const write = isJson ? writeJson : writeText;
  return (scope) => (level, message, meta) => {
    if (level !== "debug" || showsDebug()) write(scope, level, message, meta);
  };
}

type Meta = Parameters<ReturnType<LogFunctionFactory>>[2];

function writeJson(scope: Partial<LogScope>, level: LogLevel, message: string, meta: Meta): void {
  const line = { time: new Date().toISOString(), level, message, ...scope, ...meta };
  process.stdout.write(`${JSON.stringify(line, describeErrors)}\n`);
}

/** The properties of an error that matter are not enumerable; a client or pool in the details is a page of noise. */
function describeErrors(key: string, value: unknown): unknown {
  if (value instanceof Error) {
    return {
      name: value.name,
      message: value.message,
      ...("code" in value && { code: value.code }),
      stack: value.stack,
    };
  }
  return ["pgPool", "workerPool", "worker", "client", "ctx"].includes(key) ? undefined : value;
}

function writeText(scope: Partial<LogScope>, level: LogLevel, message: string): void {
  const stream = level === "error" || level === "warning" ? process.stderr : process.stdout;
  const colours = pc.createColors(pc.isColorSupported && stream.isTTY === true);
  const time = colours.dim(new Date().toTimeString().slice(0, 8));
  const job = scope.jobId ? colours.dim(`{${scope.jobId}}`) : "";
  const source = scope.taskIdentifier ? colours.cyan(scope.taskIdentifier) + job : colours.dim(scope.label ?? "core");
  stream.write(`${time} ${paint(level, colours)} ${source} ${message}\n`);
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
