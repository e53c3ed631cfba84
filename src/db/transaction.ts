import type { PoolClient } from "pg";
import { foreverMs, queryWithin, type Watch } from "./query-within.ts";
import { isInDoubt } from "./sqlstate.ts";

export interface TransactionOptions {
  /** Roll back at the end, whatever the work did. */
  readonly dryRun?: boolean | undefined;
  /** Tells when there will be no answer; without it, one is waited for without limit. */
  readonly watch?: Watch | undefined;
  /** The task that the connection is for: it is named if the transaction is left open. */
  readonly borrower?: string | undefined;
}

/**
 * Runs the work between `begin` and `commit` on this client; an error rolls back. Each statement sees what was committed before
 * it began, whatever the defaults of the role or the database are.
 */
export async function inTransaction<T>(
  client: PoolClient,
  work: () => Promise<T>,
  { dryRun = false, watch }: TransactionOptions = {},
): Promise<T> {
  const send = (text: string): Promise<unknown> => queryWithin(client, { text }, watch && foreverMs, watch);
  await send("begin isolation level read committed read write");
  try {
    const result = await work();
    await send(dryRun ? "rollback" : "commit");
    return result;
  } catch (error) {
    // A lost connection takes its transaction with it, and asking it would only keep us waiting.
    if (!isInDoubt(error)) await send("rollback").catch(() => undefined);
    throw error;
  }
}
