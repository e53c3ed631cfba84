import { ConfigError } from "../../errors.ts";
import type { TextRow } from "./query.ts";

/** A thing we know nothing about yet, but may look at. */
export type Stranger = Readonly<Record<PropertyKey, unknown>>;

export function hasMethods(thing: Stranger, ...names: string[]): boolean {
  return names.every((name) => typeof thing[name] === "function");
}

/** Some libraries give the rows, others an object with the rows in it. */
export function rowsOf(result: unknown): TextRow[] {
  const rows = typeof result === "object" && result !== null && "rows" in result ? result.rows : result;
  if (Array.isArray(rows)) return rows as TextRow[];
  throw new ConfigError(`The transaction answered with ${String(result)}; expected rows, or an object with 'rows'.`);
}

export function notATransaction(given: string, wayOut: string, by = "withTransaction"): ConfigError {
  return new ConfigError(`'${by}' was given ${given}, which is not a transaction: ${wayOut}`);
}
