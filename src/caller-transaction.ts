type Method = (...parameters: never[]) => unknown;

/**
 * A transaction that the caller has opened and will end, of any of the libraries we know. Only the marks by which we know them
 * are named here, so that none of them needs to be installed.
 */
export type CallerTransaction =
  /** node-postgres: a `Client`, or a `PoolClient`, on which you ran `begin`. */
  | { readonly query: Method; readonly escapeIdentifier: Method }
  /** Drizzle, on node-postgres or postgres.js. */
  | { readonly execute: Method; readonly rollback: Method }
  /** Kysely. */
  | { readonly executeQuery: Method; readonly isTransaction: true }
  /** Knex. */
  | { readonly raw: Method; readonly commit: Method }
  /** TypeORM: the transaction's `EntityManager`. */
  | { readonly query: Method; readonly getRepository: Method }
  /** TypeORM: a `QueryRunner`. */
  | { readonly query: Method; readonly isTransactionActive: boolean }
  /** MikroORM: the transaction's `EntityManager`. */
  | { readonly getTransactionContext: Method }
  /** Prisma: the client of an interactive transaction. */
  | { readonly $queryRawUnsafe: Method }
  /** postgres.js: what `sql.begin` hands you. */
  | { readonly unsafe: Method; readonly savepoint: Method }
  | QueryFunction;

/** For any other library: runs a statement with `$1`, `$2`… and its values in your transaction, and returns the rows as objects. */
export type QueryFunction = (
  text: string,
  values: (string | null)[],
) => PromiseLike<readonly unknown[] | { readonly rows: readonly unknown[] }>;
