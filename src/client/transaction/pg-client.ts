import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface PgClient {
  query(query: { text: string; values: unknown[] }): Promise<unknown>;
}

/** Refuses a client on which no transaction is open: each statement would commit by itself. One that is busy may be about to open one. */
export function requireOpenTransaction(tx: unknown): void {
  const client = tx as { getTransactionStatus?: () => string | null; readonly readyForQuery?: boolean } | null;
  if (typeof client?.getTransactionStatus !== "function" || client.readyForQuery === false) return;
  if (client.getTransactionStatus() !== "I") return;
  throw notATransaction("a pg client on which no transaction is open", "run 'begin' on it first.", "completeIn");
}

/** node-postgres: a `Client` or `PoolClient`. */
export function pgQuery(tx: Stranger): Query | undefined {
  if (hasMethods(tx, "query", "connect") && typeof tx.totalCount === "number") {
    throw notATransaction(
      "a pg Pool",
      "each of its queries may use another connection. Take a client with 'await pool.connect()', run 'begin' on it, and hand that in.",
    );
  }
  if (!hasMethods(tx, "query", "escapeIdentifier")) return undefined;
  const client = tx as unknown as PgClient;
  return async (text, values) => rowsOf(await client.query({ text, values }));
}
