import pg from "pg";
import { readConnectionString } from "../connection-string.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { PatientClient } from "./patient-client.ts";
import { isUnreachable } from "./sqlstate.ts";

export interface PoolOptions {
  /** The user's own pool. */
  readonly pgPool?: pg.Pool | undefined;
  readonly connectionString: string | undefined;
  readonly maxPoolSize: number;
  /** How many jobs will share the pool. */
  readonly concurrency: number;
  /** How long a connection of a pool that we make stays open without use; 10 s, if left out. */
  readonly idleMs?: number | undefined;
  readonly logger: Logger;
}

export interface HeldPool {
  readonly pool: pg.Pool;
  /** True if we made the pool, and so may treat it as we like. */
  readonly isOurs: boolean;
  /** Ends a pool of ours; takes what we added off a user's pool. May be called twice. */
  readonly release: () => Promise<void>;
}

/** The pool to work with: the user's own, or one made from the connection string or the PG* environment. */
export function holdPool(options: PoolOptions, env: NodeJS.ProcessEnv = process.env): HeldPool {
  // A Client can connect, too, but has no options.
  if (options.pgPool && (typeof options.pgPool.connect !== "function" || !options.pgPool.options)) {
    throw new ConfigError("'pgPool' must be a Pool of the package 'pg', or something that works like one.");
  }
  const held = options.pgPool ? borrowPool(options.pgPool, options.logger) : makePool(options, env);
  warnIfSmall(held.pool, options);
  return held;
}

/** An idle or lent connection that breaks must never bring the process down. */
function makeGuard(logger: () => Logger): {
  onError: (error: Error) => void;
  onConnect: (client: pg.PoolClient) => void;
} {
  const onError = (error: Error): void => {
    // The pool makes another one, and whatever needs the database notices if it is unreachable.
    logger()[isUnreachable(error) ? "debug" : "error"](`PostgreSQL connection broke: ${error.message}`, { error });
  };
  return {
    onError,
    onConnect: (client) => {
      client.on("error", onError);
    },
  };
}

function makePool({ connectionString, maxPoolSize, idleMs, logger }: PoolOptions, env: NodeJS.ProcessEnv): HeldPool {
  if (!connectionString && !env.PGDATABASE) {
    throw new ConfigError(
      "You must either specify `pgPool` or `connectionString`, or you must make the `DATABASE_URL` or `PG*` environmental " +
        "variables available. (Of the PG* variables, PGDATABASE is the one that counts.)",
    );
  }
  const pool = new pg.Pool({
    ...(connectionString && readConnectionString(connectionString)),
    max: maxPoolSize,
    ...(idleMs !== undefined && { idleTimeoutMillis: idleMs }),
    Client: PatientClient,
    // A peer that is gone without a word is noticed within a minute, and no firewall forgets an idle connection.
    keepAlive: true,
    keepAliveInitialDelayMillis: 30_000,
  });
  const { onError, onConnect } = makeGuard(() => logger);
  pool.on("error", onError);
  pool.on("connect", onConnect);
  let ending: Promise<void> | undefined;
  return { pool, isOurs: true, release: () => (ending ??= pool.end()) };
}

/** The handlers that a user's pool has from us, and who needs them: the utils and several runners may share one pool. */
interface Lent {
  readonly borrowers: Set<{ readonly logger: Logger }>;
  readonly takeAway: () => void;
}

const lentByPool = new WeakMap<pg.Pool, Lent>();

function borrowPool(pool: pg.Pool, logger: Logger): HeldPool {
  const lent = lentByPool.get(pool) ?? lendHandlers(pool, logger);
  const borrower = { logger };
  lent?.borrowers.add(borrower);
  const release = (): Promise<void> => {
    if (lent?.borrowers.delete(borrower) && lent.borrowers.size === 0) lent.takeAway();
    return Promise.resolve();
  };
  return { pool, isOurs: false, release };
}

/** Undefined if the pool has handlers of its own. */
function lendHandlers(pool: pg.Pool, logger: Logger): Lent | undefined {
  const bare = (["error", "connect"] as const).filter((event) => pool.listenerCount(event) === 0);
  if (bare.length === 0) return undefined;
  logger.warn(
    `Your pgPool has no handler for ${bare.map((event) => `'${event}'`).join(" and ")} events, so a broken connection could ` +
      "end the process. Hathi adds handlers until it is released; add pool.on('error', …), and " +
      "pool.on('connect', (client) => client.on('error', …)), to be safe always.",
  );
  const borrowers: Lent["borrowers"] = new Set();
  const { onError, onConnect } = makeGuard(() => borrowers.values().next().value?.logger ?? logger);
  if (bare.includes("error")) pool.on("error", onError);
  if (bare.includes("connect")) pool.on("connect", onConnect);
  const takeAway = (): void => {
    pool.off("error", onError);
    pool.off("connect", onConnect);
    lentByPool.delete(pool);
  };
  const lent: Lent = { borrowers, takeAway };
  lentByPool.set(pool, lent);
  return lent;
}

function warnIfSmall(pool: pg.Pool, { concurrency, logger }: PoolOptions): void {
  const max = pool.options.max || 10;
  if (max >= concurrency) return;
  logger.warn(
    `The pool has at most ${max} connections for ${concurrency} jobs at once: jobs that use the database will wait for each ` +
      "other. Raise 'maxPoolSize' (or your pool's 'max') to at least the concurrency.",
  );
}
