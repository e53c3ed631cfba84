import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface KyselyTransaction {
  withoutPlugins(): KyselyTransaction;
  executeQuery(query: object): Promise<unknown>;
}

/** Kysely: the `Transaction` of `transaction().execute`, or the controlled one of `startTransaction().execute`. */
export function kyselyQuery(tx: Stranger): Query | undefined {
  if (!hasMethods(tx, "executeQuery", "withoutPlugins")) return undefined;
  if (tx.isTransaction !== true) {
    throw notATransaction(
      "a Kysely instance",
      "hand in what its 'transaction' gives you, as in db.transaction().execute(async (trx) => …).",
    );
  }
  // A plugin may rename columns or parse what looks like JSON.
  const transaction = (tx as unknown as KyselyTransaction).withoutPlugins();
  return async (text, values) => rowsOf(await transaction.executeQuery(compiled(text, values)));
}

/** What `CompiledQuery.raw` would make. */
function compiled(text: string, values: readonly unknown[]): object {
  return {
    sql: text,
    parameters: values,
    query: { kind: "RawNode", sqlFragments: [text], parameters: [] },
    queryId: { queryId: "hathi" },
  };
}
