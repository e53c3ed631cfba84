import type { Query } from "./caller-transaction.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./marks.ts";

interface PgClient {
  query(query: { text: string; values: unknown[] }): Promise<unknown>;
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
