import {
  type LogFunctionFactory as GraphileLogFunctionFactory,
  Logger as GraphileLogger,
  type LogLevel,
  makeConsoleLogFactory,
} from "@graphile/logger";

export type { LogLevel };

/** Where a message comes from. */
export interface LogScope {
  label?: string;
  workerId?: string;
  taskIdentifier?: string;
  jobId?: string;
}

export type LogFunctionFactory = GraphileLogFunctionFactory<LogScope>;

/** Hands messages, with their scope, to whatever the user logs with. */
export class Logger extends GraphileLogger<LogScope> {}

/** Logs to the console; debug messages only with GRAPHILE_LOGGER_DEBUG (or GRAPHILE_WORKER_DEBUG) set. */
export const consoleLogFactory: LogFunctionFactory = makeConsoleLogFactory<LogScope>({
  format: "[%s%s] %s: %s",
  formatParameters(level, message, scope) {
    const task = scope.taskIdentifier ? `: ${scope.taskIdentifier}` : "";
    const job = scope.jobId ? `{${scope.jobId}}` : "";
    const source = scope.workerId ? `(${scope.workerId}${task}${job})` : `${task}${job}`;
    return [scope.label ?? "core", source, level.toUpperCase(), message];
  },
});

/** The logger that is used when the user gives none. */
export const defaultLogger = new Logger(consoleLogFactory);
