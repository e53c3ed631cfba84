import {
  type LogFunctionFactory as GraphileLogFunctionFactory,
  Logger as GraphileLogger,
  type LogLevel,
  makeConsoleLogFactory,
} from "@graphile/logger";
import { messageOf } from "./errors.ts";
import { metaText } from "./log-meta.ts";
import { printable, printableMessage } from "./util/printable.ts";

export type { LogLevel };

/** Where a message comes from. */
export interface LogScope {
  label?: string;
  workerId?: string;
  taskIdentifier?: string;
  jobId?: string;
}

export type LogFunctionFactory = GraphileLogFunctionFactory<LogScope>;

/** A logger: passes messages and their scope to a log function of your choice. */
export class Logger extends GraphileLogger<LogScope> {}

/** Logs to the console; debug messages only if GRAPHILE_LOGGER_DEBUG or GRAPHILE_WORKER_DEBUG is set. */
export const consoleLogFactory: LogFunctionFactory = makeConsoleLogFactory<LogScope>({
  format: "[%s%s] %s: %s",
  formatParameters(level, message, scope, meta) {
    const task = scope.taskIdentifier ? `: ${printable(scope.taskIdentifier)}` : "";
    const job = scope.jobId ? `{${scope.jobId}}` : "";
    const source = scope.workerId ? `(${scope.workerId}${task}${job})` : `${task}${job}`;
    return [scope.label ?? "core", source, level.toUpperCase(), printableMessage(message + metaText(message, meta))];
  },
});

/** The logger that is used when the user gives none. */
export const defaultLogger = new Logger(consoleLogFactory);

/** The same logger, except that it never throws: a broken log must not stop the work. */
export function guardLogger(logger: Logger): Logger {
  let isReported = false;
  const report = (thrown: unknown): void => {
    if (!isReported) process.emitWarning(`The logger failed, so log lines are missing: ${messageOf(thrown)}`);
    isReported = true;
  };
  return new Logger((scope) => {
    let scoped: Pick<Logger, "error" | "warn" | "info" | "debug"> = logger;
    try {
      if (Object.keys(scope).length > 0) scoped = logger.scope(scope);
    } catch (thrown) {
      report(thrown);
    }
    return (level, message, meta) => {
      try {
        const written: unknown = scoped[methods[level]](message, meta);
        if (written instanceof Promise) written.catch(report);
      } catch (thrown) {
        report(thrown);
      }
    };
  });
}

const methods = { error: "error", warning: "warn", info: "info", debug: "debug" } as const;
