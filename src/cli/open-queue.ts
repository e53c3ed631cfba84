import { type JobInspector, makeJobInspector } from "../admin/inspect.ts";
import { type JobAdmin, makeJobAdmin } from "../admin/jobs.ts";
import type { Database } from "../db/database.ts";
import { Logger } from "../logger.ts";
import { compileSharedOptions } from "../runner/compile.ts";
import { openDatabase } from "../runner/open-database.ts";
import { makeLogFactory } from "./log-factory.ts";
import { type DatabaseArgs, resolveOptions } from "./resolve-options.ts";

export interface Queue extends JobInspector, JobAdmin {
  readonly database: Database;
}

/** Warnings go to stderr; the rest is silent, so that stdout carries nothing but the answer. */
export function quietLogger(): Logger {
  const factory = makeLogFactory("text");
  return new Logger((scope) => {
    const log = factory(scope);
    return (level, message, meta) => (level === "info" ? undefined : log(level, message, meta));
  });
}

/** Lends the queue that the flags name, as it is: looking at a database must not change its schema. */
export async function withQueue<T>(args: DatabaseArgs, callback: (queue: Queue) => Promise<T>): Promise<T> {
  const { options, connection } = await resolveOptions(args, { logger: quietLogger(), concurrentJobs: 1 });
  try {
    const { database, release } = openDatabase(compileSharedOptions(options));
    try {
      return await callback({ database, ...makeJobInspector(database), ...makeJobAdmin(database) });
    } finally {
      await release();
    }
  } finally {
    await connection.release();
  }
}
