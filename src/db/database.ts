import type { Client, Pool, PoolClient, QueryConfig } from "pg";
import { codeOf } from "../errors.ts";
import type { EnhancedWithPgClient, WithPgClient } from "../task.ts";
import { backoffMs } from "../util/backoff.ts";
import { sleep } from "../util/sleep.ts";
import { requestCancel } from "./cancel-request.ts";
import { dropIdleClients, watchForAnswer } from "./forgotten-connection.ts";
import { putBack, takeClient } from "./pooled-client.ts";
import { queryWithin, type Watch } from "./query-within.ts";
import { breaksPreparedStatements, isRepeatable, isSilence, isUnreachable, lockNotAvailable } from "./sqlstate.ts";
import { forSchema, preparedName, type Statement } from "./statement.ts";
import { inTransaction, type TransactionOptions } from "./transaction.ts";

/** The one door to PostgreSQL: runs statements in a schema, on whatever client or pool it was made from. */
export interface Database {
  readonly schema: string;
  /** Rejects, and drops the connection, when the signal aborts. */
  run<Params, Row>(statement: Statement<Params, Row>, params: Params, signal?: AbortSignal): Promise<Row[]>;
  /** The same for work that need not be done any more once the signal aborts: then no connection is waited for, and nothing more is sent. */
  until(signal: AbortSignal): Database;
  readonly withPgClient: EnhancedWithPgClient;
  /** Runs the work in one transaction on one connection; an error rolls back. */
  transaction<T>(
    work: (tx: Database) => Promise<T>,
    options?: Pick<TransactionOptions, "dryRun" | "borrower">,
  ): Promise<T>;
  /** As `withPgClient`, for a task, which is named if it leaves a transaction open. */
  lendTo(task: string): EnhancedWithPgClient;
}

export interface DatabaseOptions {
  readonly schema: string;
  readonly preparedStatements: boolean;
  /** No statement may take longer: then the server is asked to stop it, and it fails. */
  readonly statementTimeoutMs?: number | undefined;
  /** Told once, when prepared statements were switched off because a pooler breaks them. */
  readonly onPreparedStatementsBroken?: () => void;
  /** Told that a connection was closed because it was in a transaction, and which task left it so, if that is known. */
  readonly onOpenTransaction?: (task?: string) => void;
}

/** One query and how long it may take. */
interface Sent extends QueryConfig {
  readonly query_timeout?: number | undefined;
  readonly transferMs: number;
  readonly givesWay: boolean;
  readonly signal: AbortSignal | undefined;
}

type Send = (query: Sent) => Promise<{ rows: unknown[] }>;

/** Pools whose connections lose prepared statements; learned once for everything that uses the pool. */
const poolsWithoutPrepared = new WeakSet<Pool>();

export function poolDatabase(pool: Pool, options: DatabaseOptions, over?: AbortSignal): Database {
  const take = (): Promise<PoolClient> => takeClient(pool, () => options.onOpenTransaction?.(), over);
  const lend =
    (borrower?: string): WithPgClient =>
    async (callback) => {
      const client = await take();
      let failure: unknown;
      try {
        return await callback(client);
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        putBack(client, failure, () => options.onOpenTransaction?.(borrower));
      }
    };
  const usersPatienceMs = pool.options.query_timeout || Infinity;
  const send: Send = async ({ query_timeout: patienceMs, transferMs, signal, ...query }) => {
    const client = await take();
    if (patienceMs === undefined) return sendOn(client, query);
    return sendPatiently(pool, client, query, Math.min(patienceMs, usersPatienceMs) + transferMs, signal);
  };
  const sendAgain: Send = (query) => repeatConflicts(() => send(query), query.givesWay);
  const prepared = {
    has: () => !poolsWithoutPrepared.has(pool),
    drop: () => poolsWithoutPrepared.add(pool),
  };
  return {
    ...makeDatabase(sendAgain, lend, options, prepared, (client) => (giveUp) => watchForAnswer(pool, client, giveUp)),
    until: (signal) => poolDatabase(pool, options, signal),
  };
}

/** How often a statement is repeated at once when the database could not fit it in between others. */
const conflictTries = 5;
const conflictBackoff = { minMs: 2, maxMs: 50, factor: 2 };

/** A statement of its own that ran into a conflict has done nothing, so it may be sent again. */
async function repeatConflicts<T>(send: () => Promise<T>, givesWay: boolean): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await send();
    } catch (error) {
      const isConflict = isRepeatable(error) || (givesWay && codeOf(error) === lockNotAvailable);
      if (!isConflict || attempt + 1 >= conflictTries) throw error;
      await sleep(backoffMs(conflictBackoff, attempt));
    }
  }
}

async function sendOn(client: PoolClient, query: QueryConfig): Promise<{ rows: unknown[] }> {
  let failure: unknown;
  try {
    return await client.query(query);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    putBack(client, failure, ignore);
  }
}

/** How long a broken connection is kept so that the server can be asked to stop what it still does for it. */
const cancelMs = 2_000;

/**
 * A connection that died without a word (a lost host, a firewall that forgot it) would keep a query waiting without end. After
 * `patienceMs`, or as soon as the server is known to wait for us, the connection is dropped and the server asked to stop whatever it
 * may still be doing for it.
 */
async function sendPatiently(
  pool: Pool,
  client: PoolClient,
  query: QueryConfig,
  patienceMs: number,
  signal: AbortSignal | undefined,
): Promise<{ rows: unknown[] }> {
  const stop = (): void => void (client as unknown as Client).end().catch(ignore);
  signal?.addEventListener("abort", stop, { once: true });
  try {
    signal?.throwIfAborted();
    const result = await queryWithin(client, query, patienceMs, (giveUp) => watchForAnswer(pool, client, giveUp));
    putBack(client, undefined, ignore);
    return result;
  } catch (error) {
    // A pooler finds the backend by way of the connection, so that must be open still.
    if (isSilence(error)) {
      void requestCancel(client, cancelMs).then(() => client.release(error as Error));
      dropIdleClients(pool);
    } else client.release(error as Error);
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

function ignore(): void {}

/** For a single client: our own statements queue up behind each other, since a client can do one thing at a time. */
export function clientDatabase(client: PoolClient, options: DatabaseOptions, watch?: Watch): Database {
  let last: Promise<unknown> = Promise.resolve();
  // The client is not ours, so an abort must not end it.
  const send: Send = ({ name, text, values, query_timeout: patienceMs, transferMs }) => {
    const withinMs = patienceMs && patienceMs + transferMs;
    const query = { ...(name !== undefined && { name }), text, ...(values && { values }) };
    const result = last.then(() => queryWithin(client, query, withinMs, watch));
    last = result.catch(() => undefined);
    return result;
  };
  let hasPrepared = true;
  const prepared = {
    has: () => hasPrepared,
    drop: () => {
      hasPrepared = false;
    },
  };
  const database: Database = {
    ...makeDatabase(send, () => (callback) => callback(client), options, prepared),
    until: () => database, // its connection is there
  };
  return database;
}

/** Whether prepared statements work here. */
interface Prepared {
  has(): boolean;
  drop(): void;
}

function makeDatabase(
  send: Send,
  lend: (borrower?: string) => WithPgClient,
  options: DatabaseOptions,
  prepared: Prepared,
  watchOf?: (client: PoolClient) => Watch,
): Omit<Database, "until"> {
  const { schema, preparedStatements } = options;
  const textByStatement = new WeakMap<object, { text: string; name: string }>();

  const prepare = (statement: Statement<never, unknown>): { text: string; name: string } => {
    const known = textByStatement.get(statement);
    if (known) return known;
    const text = forSchema(statement.text, schema);
    const made = { text, name: preparedName(statement.name, text) };
    textByStatement.set(statement, made);
    return made;
  };

  const run = async <Params, Row>(
    statement: Statement<Params, Row>,
    params: Params,
    signal?: AbortSignal,
  ): Promise<Row[]> => {
    const { text, name } = prepare(statement);
    const values = statement.values(params);
    const patienceMs = options.statementTimeoutMs ?? statement.patienceMs;
    const transferMs = statement.transferMs?.(params) ?? 0;
    const limits = { query_timeout: patienceMs, transferMs, givesWay: statement.givesWay ?? false, signal };
    if (preparedStatements && prepared.has()) {
      try {
        const { rows } = await send({ name, text, values, ...limits });
        return rows as Row[];
      } catch (error) {
        if (!breaksPreparedStatements(error)) throw error;
        if (prepared.has()) options.onPreparedStatementsBroken?.();
        prepared.drop();
      }
    }
    const { rows } = await send({ text, values, ...limits });
    return rows as Row[];
  };

  const lendTo = (borrower?: string): EnhancedWithPgClient => {
    const withPgClient = lend(borrower);
    return Object.assign(withPgClient, { withRetries: makeWithRetries(withPgClient) });
  };
  const withPgClient = lendTo();
  const transaction: Database["transaction"] = (work, transactionOptions) =>
    lend(transactionOptions?.borrower)((client) => {
      const watch = watchOf?.(client);
      const tx = clientDatabase(client, { schema, preparedStatements: false }, watch);
      return inTransaction(client, () => work(tx), { ...transactionOptions, watch });
    });

  return { schema, run, withPgClient, transaction, lendTo };
}

const repeatBackoff = { minMs: 50, maxMs: 5_000, factor: 1.5 };
const unreachableBackoff = { minMs: 3_000, maxMs: 120_000, factor: 1.5 };
const maxTries = 100;

function makeWithRetries(withPgClient: WithPgClient): WithPgClient {
  return async (callback) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await withPgClient(callback);
      } catch (error) {
        const backoff = isRepeatable(error) ? repeatBackoff : isUnreachable(error) ? unreachableBackoff : undefined;
        if (!backoff || attempt + 1 >= maxTries) throw error;
        await sleep(backoffMs(backoff, attempt));
      }
    }
  };
}
