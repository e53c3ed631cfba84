import { createHash } from "node:crypto";
import type { ClientBase } from "pg";

/** One thing we ask of the database: its text, how parameters become values, and the shape of its rows. */
export interface Statement<Params, Row> {
  readonly name: string;
  readonly text: string;
  readonly values: (params: Params) => unknown[];
  /** How long to wait for the answer before the connection counts as dead. Without it: no limit. */
  readonly patienceMs?: number;
  /** How much longer it may take because there is much to transfer. */
  readonly transferMs?: (params: Params) => number;
  /** Its function gives up a lock after a tenth of a second (`000004-settle.sql`): a lock timeout means that it is sent again. */
  readonly givesWay?: true;
  /** Phantom: carries the row type. */
  readonly row?: Row;
}

export function statement<Params, Row>(definition: Omit<Statement<Params, Row>, "row">): Statement<Params, Row> {
  return definition;
}

/** A statement with its parameters. */
export interface Bound<Row> {
  readonly statement: Statement<never, Row>;
  readonly params: never;
}

export function bind<Params, Row>(statement: Statement<Params, Row>, params: Params): Bound<Row> {
  return { statement, params: params as never };
}

/** For statements that take milliseconds: no response for this long means that the server is unreachable. */
export const shortPatienceMs = 30_000;

/** All SQL in this repository is written against this schema; `forSchema` is the only place that changes it. */
const defaultSchema = /\bgraphile_worker\./g;

export function forSchema(text: string, schema: string): string {
  const quoted = `${quoteIdentifier(schema)}.`;
  return text.replace(defaultSchema, () => quoted);
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * Begins every transaction that creates objects: defaults, constraints, views and indexes are bound to the functions and
 * operators that the search path finds at that moment, and a role that may create some in `public` could offer others.
 */
export const safeSearchPath = "set local search_path = pg_catalog, pg_temp;";

/** Prepared names carry a hash of their text, so two texts can never share a name on one connection. */
export function preparedName(name: string, text: string): string {
  return `${name}_${createHash("sha1").update(text).digest("hex").slice(0, 8)}`;
}

/** Asks on a client that is ours alone for now, unprepared and without a limit. */
export async function ask<Params, Row>(
  client: ClientBase,
  { text, values }: Statement<Params, Row>,
  params: Params,
  schema = "graphile_worker",
): Promise<Row[]> {
  const { rows } = await client.query({ text: forSchema(text, schema), values: [...values(params)] });
  return rows as Row[];
}
