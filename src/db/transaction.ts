import type { PoolClient } from "pg";
import { isInDoubt } from "./sqlstate.ts";

export interface TransactionOptions {
  /** Roll back at the end, whatever the work did. */
  readonly dryRun?: boolean | undefined;
}

/**
 * Runs the work between `begin` and `commit` on this client; an error rolls back. Each statement sees what was committed before
 * it began, whatever the defaults of the role or the database are.
 */
export async function inTransaction<T>(
  client: PoolClient,
  work: () => Promise<T>,
  { dryRun = false }: TransactionOptions = {},
): Promise<T> {
  await client.query("begin isolation level read committed read write");
  try {
    const result = await work();
    await client.query(dryRun ? "rollback" : "commit");
    return result;
  } catch (error) {
    // A lost connection takes its transaction with it, and asking it would only keep us waiting.
    if (!isInDoubt(error)) await client.query("rollback").catch(() => undefined);
    throw error;
  }
}
