import type { Query } from "./query.ts";

const lastByTransaction = new WeakMap<object, Promise<unknown>>();

/** A transaction has one connection, and a connection does one thing at a time: our own queries wait for each other. */
export function oneAtATime(tx: object, query: Query): Query {
  return (text, values) => {
    const last = lastByTransaction.get(tx) ?? Promise.resolve();
    const result = last.then(() => query(text, values));
    lastByTransaction.set(
      tx,
      result.catch(() => undefined),
    );
    return result;
  };
}
