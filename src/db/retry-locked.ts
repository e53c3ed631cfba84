import type { PoolClient } from "pg";
import { codeOf } from "../errors.ts";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { findLockHolders, listHolders } from "./lock-holders.ts";
import { isClash, isRepeatable, lockNotAvailable } from "./sqlstate.ts";
import { safeSearchPath } from "./statement.ts";
import { inTransaction } from "./transaction.ts";

export interface RetryLockedOptions {
  readonly client: PoolClient;
  readonly schema: string;
  readonly logger?: Logger | undefined;
  /** What waits, for the log. */
  readonly what: string;
}

/** While we wait for a lock, everyone who asks for the table waits behind us: so briefly, and with rests in between. */
const lockTimeoutMs = 200;
const restMs = 500;
const maxClashes = 10;
/** Servers before PostgreSQL 17 do not know the setting. */
const noTransactionTimeout =
  "select set_config(name, '0', true) from pg_catalog.pg_settings where name = 'transaction_timeout'";

/**
 * Runs the callback in a transaction that waits for no lock longer than a moment, again and again until it gets through. It holds a lock
 * of the schema, so one process writes and the others then find it done.
 */
export async function retryLocked(options: RetryLockedOptions, callback: () => Promise<void>): Promise<void> {
  const { client, schema } = options;
  const tell = teller(options);
  for (let clashes = 0; ; ) {
    try {
      return await inTransaction(client, async () => {
        await client.query(`set local statement_timeout = 0; set local lock_timeout = 0; ${safeSearchPath}`);
        await client.query(noTransactionTimeout);
        // Ends with the transaction: the only kind of lock that is safe behind a transaction pooler.
        await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [`hathi migrate ${schema}`]);
        await client.query(`set local lock_timeout = ${lockTimeoutMs}`);
        await callback();
      });
    } catch (error) {
      if (codeOf(error) === lockNotAvailable) {
        await tell();
        await sleep(restMs * (0.5 + Math.random()));
      } else {
        // Another process that does not use our lock, an original worker for example, migrates too.
        if (!(isClash(error) || isRepeatable(error)) || ++clashes === maxClashes) throw error;
        await sleep(100 * clashes);
      }
    }
  }
}

/** Logs who is in the way, and again whenever that changes. */
function teller({ client, schema, logger, what }: RetryLockedOptions): () => Promise<void> {
  let told = "";
  return async () => {
    if (!logger) return;
    const holders = await findLockHolders(client, schema);
    const pids = holders.map(({ pid }) => pid).join();
    if (pids === told) return;
    told = pids;
    logger.info(`Waiting for locks: ${what} is held up by ${listHolders(holders)}.`);
  };
}
