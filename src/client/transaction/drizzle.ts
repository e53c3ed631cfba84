import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface DrizzleTransaction {
  execute(query: { getSQL(): unknown }): PromiseLike<unknown>;
}

/** Drizzle marks its classes so that several copies of it can recognise each other's objects. */
const kind = Symbol.for("drizzle:entityKind");

/** Drizzle, on any of its PostgreSQL drivers. */
export function drizzleQuery(tx: Stranger): Query | undefined {
  const maker = tx.constructor;
  if (typeof maker !== "function" || !(kind in maker) || !hasMethods(tx, "execute")) return undefined;
  if (!hasMethods(tx, "rollback")) {
    throw notATransaction(
      "a Drizzle database",
      "hand in what its 'transaction' gives you, as in db.transaction(async (tx) => …).",
    );
  }
  const transaction = tx as unknown as DrizzleTransaction;
  // The two methods of its SQL objects that `execute` calls; the object itself can only be made with the library's own classes.
  return async (text, values) =>
    rowsOf(await transaction.execute({ getSQL: () => ({ toQuery: () => ({ sql: text, params: values }) }) }));
}
