import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface KnexTransaction {
  raw(text: string, bindings: readonly (string | null)[]): PromiseLike<unknown>;
}

/** Knex: what `knex.transaction` gives. */
export function knexQuery(tx: Stranger): Query | undefined {
  if (!hasMethods(tx, "raw", "transaction", "queryBuilder")) return undefined;
  if (tx.isTransaction !== true) {
    throw notATransaction(
      "Knex itself",
      "hand in what its 'transaction' gives you, as in knex.transaction(async (trx) => …).",
    );
  }
  const transaction = tx as unknown as KnexTransaction;
  return async (text, values) => {
    const { sql, bindings } = withQuestionMarks(text, values);
    return rowsOf(await transaction.raw(sql, bindings));
  };
}

/**
 * Knex counts question marks: each use of a parameter is a binding of its own, and any other question mark is escaped. What looks
 * like a parameter inside a quoted name is not one.
 */
function withQuestionMarks(
  text: string,
  values: readonly (string | null)[],
): { sql: string; bindings: (string | null)[] } {
  const bindings: (string | null)[] = [];
  const sql = text.replace(/"[^"]*"|\?|\$(\d+)/g, (found, number: string | undefined) => {
    if (number === undefined) return found.replaceAll("?", "\\?");
    bindings.push(values[Number(number) - 1] ?? null);
    return "?";
  });
  return { sql, bindings };
}
