import type { Pool, PoolClient, QueryConfig } from "pg";
import type { EnhancedWithPgClient, WithPgClient } from "../task.ts";
import { backoffMs } from "../util/backoff.ts";
import { sleep } from "../util/sleep.ts";
import { breaksPreparedStatements, isAway, isRepeatable, isSilence } from "./sqlstate.ts";
import { forSchema, preparedName, type Statement } from "./statement.ts";

/** The one door to PostgreSQL: runs statements in a schema, on whatever client or pool it was made from. */
export interface Database {
  readonly schema: string;
  run<Params, Row>(statement: Statement<Params, Row>, params: Params): Promise<Row[]>;
  readonly withPgClient: EnhancedWithPgClient;
}

export interface DatabaseOptions {
  readonly schema: string;
  readonly preparedStatements: boolean;
  /** Told once, when prepared statements were switched off because a pooler breaks them. */
  readonly onPreparedStatementsBroken?: () => void;
}

/** Sends one query somewhere. */
type Send = (query: QueryConfig & { query_timeout?: number | undefined }) => Promise<{ rows: unknown[] }>;

/** Pools whose connections lose prepared statements; learned once for everything that uses the pool. */
const poolsWithoutPrepared = new WeakSet<Pool>();

export function poolDatabase(pool: Pool, options: DatabaseOptions): Database {
  const withPgClient: WithPgClient = async (callback) => {
    const client = await pool.connect();
    // A client that nobody listens to would end the process when it breaks; the query that it breaks tells of it.
    client.on("error", ignore);
    try {
      const result = await callback(client);
      client.off("error", ignore);
      client.release();
      return result;
    } catch (error) {
      // A client that lost its connection must not go back into the pool.
      client.release(isAway(error) ? (error as Error) : undefined);
      if (!isAway(error)) client.off("error", ignore);
      throw error;
    }
  };
  const usersPatienceMs = pool.options.query_timeout || Infinity;
  const send: Send = ({ query_timeout: patienceMs, ...query }) =>
    patienceMs === undefined ? pool.query(query) : sendPatiently(pool, query, Math.min(patienceMs, usersPatienceMs));
  return makeDatabase(send, withPgClient, options, {
    has: () => !poolsWithoutPrepared.has(pool),
    drop: () => poolsWithoutPrepared.add(pool),
  });
}

/**
 * A connection that died without a word (a lost host, a firewall that forgot it) would keep a query waiting for ever. After
 * `patienceMs` the connection is dropped and the server asked to stop whatever it may still be doing for it.
 */
async function sendPatiently(pool: Pool, query: QueryConfig, patienceMs: number): Promise<{ rows: unknown[] }> {
  const client: PoolClient & { processID?: number | null } = await pool.connect();
  client.on("error", ignore);
  try {
    const result = await client.query({ ...query, query_timeout: patienceMs } as QueryConfig);
    client.off("error", ignore);
    client.release();
    return result;
  } catch (error) {
    client.release(error as Error);
    if (isSilence(error) && client.processID) {
      pool
        .query({
          text: "select pg_cancel_backend($1)",
          values: [client.processID],
          query_timeout: patienceMs,
        } as QueryConfig)
        .catch(ignore); // it was worth a try
    }
    throw error;
  }
}

function ignore(): void {}

/** For a single client: our own statements queue up behind each other, since a client can do one thing at a time. */
export function clientDatabase(client: PoolClient, options: DatabaseOptions): Database {
  let last: Promise<unknown> = Promise.resolve();
  const send: Send = (query) => {
    const result = last.then(() => client.query(query));
    last = result.catch(() => undefined);
    return result;
  };
  let hasPrepared = true;
  return makeDatabase(send, (callback) => callback(client), options, {
    has: () => hasPrepared,
    drop: () => {
      hasPrepared = false;
    },
  });
}

/** Whether prepared statements work here. */
interface Prepared {
  has(): boolean;
  drop(): void;
}

function makeDatabase(send: Send, withPgClient: WithPgClient, options: DatabaseOptions, prepared: Prepared): Database {
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

  const run = async <Params, Row>(statement: Statement<Params, Row>, params: Params): Promise<Row[]> => {
    const { text, name } = prepare(statement);
    const values = statement.values(params);
    const query_timeout = statement.patienceMs;
    if (preparedStatements && prepared.has()) {
      try {
        const { rows } = await send({ name, text, values, query_timeout });
        return rows as Row[];
      } catch (error) {
        if (!breaksPreparedStatements(error)) throw error;
        if (prepared.has()) options.onPreparedStatementsBroken?.();
        prepared.drop();
      }
    }
    const { rows } = await send({ text, values, query_timeout });
    return rows as Row[];
  };

  return { schema, run, withPgClient: Object.assign(withPgClient, { withRetries: makeWithRetries(withPgClient) }) };
}

const repeatBackoff = { minMs: 50, maxMs: 5_000, factor: 1.5 };
const awayBackoff = { minMs: 3_000, maxMs: 120_000, factor: 1.5 };
const maxTries = 100;

function makeWithRetries(withPgClient: WithPgClient): WithPgClient {
  return async (callback) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return await withPgClient(callback);
      } catch (error) {
        const backoff = isRepeatable(error) ? repeatBackoff : isAway(error) ? awayBackoff : undefined;
        if (!backoff || attempt + 1 >= maxTries) throw error;
        await sleep(backoffMs(backoff, attempt));
      }
    }
  };
}
