import { Logger, makeLogFactory, makeWorkerUtils, type QueueUtils } from "../index.ts";
import { type DatabaseArgs, type ResolvedOptions, resolveOptions } from "./resolve-options.ts";

/** Warnings go to stderr and the rest is dropped, so that stdout carries nothing but the answer. */
export function quietLogger(onInfo: (message: string) => void = () => undefined): Logger {
  const factory = makeLogFactory("text");
  return new Logger((scope) => {
    const log = factory(scope);
    return (level, message, meta) => (level === "info" ? onInfo(message) : log(level, message, meta));
  });
}

export interface WithUtilsOptions {
  /** Install the schema or bring it up to date first; a command that only looks must not. */
  readonly migrate?: boolean;
  readonly logger?: Logger;
}

/** Opens the database that the flags name for one command, and closes everything again. */
export async function withUtils<T>(
  args: DatabaseArgs,
  callback: (utils: QueueUtils, resolved: ResolvedOptions) => Promise<T>,
  { migrate = false, logger = quietLogger() }: WithUtilsOptions = {},
): Promise<T> {
  const resolved = await resolveOptions(args, { logger, concurrentJobs: 1 });
  // On stderr, so that an answer in JSON stays clean.
  process.stderr.write(`Using ${resolved.connection.description}.\n`);
  try {
    const utils = await makeWorkerUtils(resolved.options, { migrate });
    try {
      return await callback(utils, resolved);
    } finally {
      await utils.release();
    }
  } finally {
    await resolved.connection.release();
  }
}
