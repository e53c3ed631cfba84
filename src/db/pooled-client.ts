import type { Pool, PoolClient } from "pg";
import { isUnreachable } from "./sqlstate.ts";
import { shortPatienceMs } from "./statement.ts";
import { isInTransaction } from "./transaction-status.ts";

/** Called for a connection that was closed because a transaction was left open on it. */
export type OnOpenTransaction = () => void;

/**
 * A connection of the pool that is in no transaction: what we write inside one that was left open would be rolled back
 * with it. Such connections are closed. The caller releases what it gets with `putBack`. When a signal aborts, none is waited for.
 */
export async function takeClient(
  pool: Pool,
  onOpenTransaction: OnOpenTransaction,
  signal?: AbortSignal,
): Promise<PoolClient> {
  for (;;) {
    const client = await (signal ? connectUntil(pool, signal) : pool.connect());
    // A client without an error listener would end the process when it breaks; the broken query reports the error.
    client.on("error", ignore);
    const isOpen = isInTransaction(client, shortPatienceMs);
    if (isOpen === false) return client;
    try {
      if (!(await isOpen)) return client;
      onOpenTransaction();
      client.release(true);
    } catch (error) {
      client.release(error as Error); // it is broken; the next one may not be
    }
  }
}

/** Rejects when the signal aborts; a connection that comes later goes back at once. */
function connectUntil(pool: Pool, signal: AbortSignal): Promise<PoolClient> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    pool
      .connect()
      .then((client) => (signal.aborted ? client.release() : resolve(client)), reject)
      .finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/**
 * The same for whoever keeps the connection, and handles its errors and releases it by itself. Rejects if the pool cannot get another
 * one for work, because the server is full: a worker that only listens would do nothing, and keep what it holds.
 */
export async function takeSpareClient(pool: Pool): Promise<PoolClient> {
  const client = await takeClient(pool, ignore);
  try {
    if (pool.idleCount === 0 && pool.totalCount < pool.options.max) (await pool.connect()).release();
  } catch (error) {
    client.off("error", ignore).release();
    throw error;
  }
  return client.off("error", ignore);
}

/** Returns a connection to its pool, unless it is broken or in a transaction. */
export function putBack(client: PoolClient, error: unknown, onOpenTransaction: OnOpenTransaction): void {
  if (isUnreachable(error)) {
    client.release(error as Error);
    return;
  }
  const settle = (isOpen: boolean): void => {
    if (!isOpen) client.off("error", ignore);
    client.release(isOpen);
    if (isOpen) onOpenTransaction();
  };
  const isOpen = isInTransaction(client);
  if (typeof isOpen === "boolean") settle(isOpen);
  else isOpen.then(settle, (broken: Error) => client.release(broken));
}

function ignore(): void {}
