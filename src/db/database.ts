import type { Pool, PoolClient, QueryConfig } from "pg";
import type { EnhancedWithPgClient, WithPgClient } from "../task.ts";
import { backoffMs } from "../util/backoff.ts";
import { sleep } from "../util/sleep.ts";
import { breaksPreparedStatements, isAway, isRepeatable } from "./sqlstate.ts";
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
type Send = (query: QueryConfig) => Promise<{ rows: unknown[] }>;

export function poolDatabase(pool: Pool, options: DatabaseOptions): Database {
  const withPgClient: WithPgClient = async (callback) => {
    const client = await pool.connect();
    try {
      const result = await callback(client);
      client.release();
      return result;
    } catch (error) {
      // A client that lost its connection must not go back into the pool.
      client.release(isAway(error) ? (error as Error) : undefined);
      throw error;
    }
  };
  return makeDatabase((query) => pool.query(query), withPgClient, options);
}

/** For a single client: our own statements queue up behind each other, since a client can do one thing at a time. */
export function clientDatabase(client: PoolClient, options: DatabaseOptions): Database {
  let last: Promise<unknown> = Promise.resolve();
  const send: Send = (query) => {
    const result = last.then(() => client.query(query));
    last = result.catch(() => undefined);
    return result;
  };
  return makeDatabase(send, (callback) => callback(client), options);
}

function makeDatabase(send: Send, withPgClient: WithPgClient, options: DatabaseOptions): Database {
  const { schema } = options;
  let prepared = options.preparedStatements;
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
    if (prepared) {
      try {
        const { rows } = await send({ name, text, values });
        return rows as Row[];
      } catch (error) {
        if (!breaksPreparedStatements(error)) throw error;
        if (prepared) options.onPreparedStatementsBroken?.();
        prepared = false;
      }
    }
    const { rows } = await send({ text, values });
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
