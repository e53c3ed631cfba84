import { Logger, type LogLevel } from "../../src/logger.ts";

/** A logger that only remembers. */
export function rememberingLogger(): { logger: Logger; lines: { level: LogLevel; message: string }[] } {
  const lines: { level: LogLevel; message: string }[] = [];
  const logger = new Logger(() => (level, message) => {
    lines.push({ level: level as LogLevel, message });
  });
  return { logger, lines };
}
