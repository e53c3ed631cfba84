import { knexQuery } from "./knex.ts";
import { kyselyQuery } from "./kysely.ts";
import type { Query } from "./query.ts";
import { hasMethods, notATransaction, type Stranger } from "./recognise.ts";

interface EntityManager {
  /** A transaction of Knex up to MikroORM 6, of Kysely from 7 on. */
  getTransactionContext(): Stranger | undefined;
}

/** MikroORM: an `EntityManager` inside a transaction. */
export function mikroOrmQuery(tx: Stranger): Query | undefined {
  if (!hasMethods(tx, "getTransactionContext", "isInTransaction")) return undefined;
  const context = (tx as unknown as EntityManager).getTransactionContext();
  const query = context && (knexQuery(context) ?? kyselyQuery(context));
  if (query) return query;
  throw notATransaction(
    "a MikroORM EntityManager outside a transaction",
    "hand in what 'transactional' gives you, as in em.transactional(async (em) => …), or call 'await em.begin()' first.",
  );
}
