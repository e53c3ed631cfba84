import type { SharedOptions } from "../config/options.ts";
import { type Database, type DatabaseOptions, poolDatabase } from "../db/database.ts";
import { type HeldPool, holdPool, type PoolOptions } from "../db/pool.ts";
import type { CompiledSharedOptions } from "./compile.ts";

export interface OpenDatabase extends HeldPool {
  readonly database: Database;
}

/**
 * How long a worker keeps a connection that it does not use. One of an idle fleet has nothing to ask for up to 38 s, and a new connection costs the
 * server more than the statement that it is opened for.
 */
export const workerIdleMs = 60_000;

/** Opens the database that the options name; `release` closes what was opened for it. */
export function openDatabase(
  compiled: CompiledSharedOptions<SharedOptions>,
  { idleMs, ...limits }: Pick<DatabaseOptions, "statementTimeoutMs"> & Pick<PoolOptions, "idleMs"> = {},
): OpenDatabase {
  const { settings, safeLogger: logger, _rawOptions } = compiled;
  const held = holdPool({
    pgPool: _rawOptions.pgPool,
    connectionString: settings.connectionString,
    maxPoolSize: settings.maxPoolSize,
    concurrency: settings.concurrentJobs,
    idleMs,
    logger,
  });
  const database = poolDatabase(held.pool, { ...databaseOptions(compiled), ...limits });
  return { ...held, database };
}

/** How statements are sent, whatever they are sent over. */
export function databaseOptions({ settings, safeLogger: logger }: CompiledSharedOptions<object>): DatabaseOptions {
  const warned = new Set<string | undefined>();
  return {
    schema: settings.schema,
    preparedStatements: settings.preparedStatements,
    onPreparedStatementsBroken: () => {
      logger.warn(
        "Prepared statements do not survive on this connection (a pooler in transaction mode?); going on without them. " +
          "Set preparedStatements: false (noPreparedStatements: true) to skip the attempt.",
      );
    },
    onOpenTransaction: (task) => {
      const who = task === undefined ? "A pooled connection was released with" : `Task '${task}' left`;
      logger[warned.has(task) ? "debug" : "warn"](
        `${who} an open transaction: the connection was closed, and everything done in the transaction is rolled back. ` +
          "Commit or roll back before the connection is released (for withPgClient: before its callback ends).",
      );
      warned.add(task);
    },
  };
}
