import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface QueryRunner {
  readonly isTransactionActive: boolean;
  query(text: string, values: unknown[]): Promise<unknown>;
}

/** TypeORM: a `QueryRunner`, or an `EntityManager` that has one. */
export function typeOrmQuery(tx: Stranger): Query | undefined {
  const runner = queryRunnerOf(tx);
  if (runner === undefined) return undefined;
  if (!runner?.isTransactionActive) {
    throw notATransaction(
      runner ? "a TypeORM QueryRunner without an open transaction" : "a TypeORM EntityManager outside a transaction",
      "call 'startTransaction' on the runner first, or hand in the manager of dataSource.transaction(async (manager) => …).",
    );
  }
  return async (text, values) => rowsOf(await runner.query(text, values));
}

/** Null for a manager that is not tied to a connection; undefined for anything that is not TypeORM's. */
function queryRunnerOf(tx: Stranger): QueryRunner | null | undefined {
  if (typeof tx.isTransactionActive === "boolean" && hasMethods(tx, "query")) return tx as unknown as QueryRunner;
  if (hasMethods(tx, "query", "getRepository", "transaction"))
    return (tx.queryRunner as QueryRunner | undefined) ?? null;
  return undefined;
}
