import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface PostgresJsTransaction {
  unsafe(text: string, values: readonly unknown[]): PromiseLike<unknown>;
}

/** postgres.js: what `sql.begin`, or a savepoint in it, hands to its callback. */
export function postgresJsQuery(tx: Stranger): Query | undefined {
  if (!hasMethods(tx, "unsafe", "typed")) return undefined;
  if (!hasMethods(tx, "savepoint")) {
    throw notATransaction(
      "postgres.js's 'sql' itself",
      "hand in what its 'begin' gives you, as in sql.begin(async (sql) => …).",
    );
  }
  const transaction = tx as unknown as PostgresJsTransaction;
  return async (text, values) => rowsOf(await transaction.unsafe(text, values));
}
