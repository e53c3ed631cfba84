import type { SharedOptions } from "../config/options.ts";
import { type Database, type DatabaseOptions, poolDatabase } from "../db/database.ts";
import { type HeldPool, holdPool } from "../db/pool.ts";
import type { CompiledSharedOptions } from "./compile.ts";

export interface OpenDatabase extends HeldPool {
  readonly database: Database;
}

/** Opens the database that the options name; `release` closes what was opened for it. */
export function openDatabase(compiled: CompiledSharedOptions<SharedOptions>): OpenDatabase {
  const { settings, logger, _rawOptions } = compiled;
  const held = holdPool({
    pgPool: _rawOptions.pgPool,
    connectionString: settings.connectionString,
    maxPoolSize: settings.maxPoolSize,
    concurrency: settings.concurrentJobs,
    logger,
  });
  const database = poolDatabase(held.pool, databaseOptions(compiled));
  return { ...held, database };
}

/** How statements are sent, whatever they are sent over. */
export function databaseOptions({ settings, logger }: CompiledSharedOptions<object>): DatabaseOptions {
  return {
    schema: settings.schema,
    preparedStatements: settings.preparedStatements,
    onPreparedStatementsBroken: () => {
      logger.warn(
        "Prepared statements do not survive on this connection (a pooler in transaction mode?); going on without them. " +
          "Set preparedStatements: false (noPreparedStatements: true) to skip the attempt.",
      );
    },
  };
}
