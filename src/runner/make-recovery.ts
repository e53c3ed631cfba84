import type { Pool as PgPool } from "pg";
import { readConnectionString } from "../connection-string.ts";
import type { Database } from "../db/database.ts";
import { configOf } from "../db/direct-client.ts";
import type { OutageLog } from "../db/outage-log.ts";
import type { KeepRules } from "../kept-history.ts";
import { Recovery } from "../recovery/recovery.ts";
import type { Pool } from "../worker/pool.ts";
import type { CompiledSharedOptions } from "./compile.ts";
import { sweepHooks } from "./hooks/sweep-hooks.ts";

export interface MakeRecoveryOptions {
  readonly compiled: CompiledSharedOptions<object>;
  readonly database: Database;
  readonly concurrency: number;
  readonly isForwarder: boolean;
  /** Undefined for a single client, which cannot take part: there is nothing to make another connection from. */
  readonly pgPool: PgPool | undefined;
  readonly pool: () => Pool;
  readonly outages: OutageLog;
  readonly onBreakingMigration: () => void;
  readonly keepRules: KeepRules;
}

/** A pool's part in crash recovery, if it was asked for. */
export function makeRecovery(options: MakeRecoveryOptions): Recovery | undefined {
  const { compiled, database, concurrency, pgPool, pool } = options;
  const { settings, safeLogger: logger, lifecycle } = compiled;
  if (!settings.recovery || !pgPool) return undefined;
  const { listenConnectionString } = settings;
  return new Recovery({
    database,
    config: listenConnectionString ? readConnectionString(listenConnectionString) : configOf(pgPool),
    settings: settings.recovery,
    concurrency,
    isForwarder: options.isForwarder,
    appVersion: settings.appVersion,
    logger,
    outages: options.outages,
    workerId: () => pool().id,
    onRenewed: (id, message) => pool().takeIdentity(id, message),
    onResumed: () => pool().resume(),
    onBreakingMigration: options.onBreakingMigration,
    hooks: sweepHooks(lifecycle),
    keepRules: options.keepRules,
  });
}
