import type { PoolClient } from "pg";
import { queryWithin } from "./query-within.ts";

/** What of pg's client we rely on here; all of it may be missing in a stand-in. */
interface Watched {
  /** From pg 8.23 on. */
  getTransactionStatus?: () => string | null;
  /** False while a query of the client is under way. */
  readonly readyForQuery?: boolean;
  readonly connection?: { on(event: "readyForQuery", listener: (message: { status?: string }) => void): unknown };
}

const statusByClient = new WeakMap<object, { status: string | null }>();

/**
 * Whether a client is inside a transaction that a user left open. Costs nothing, except on a client that is still busy with
 * queries that its user did not await, or that an older pg has not told us about yet: then it takes one empty query.
 */
export function isInTransaction(client: PoolClient, patienceMs?: number): boolean | Promise<boolean> {
  const watched = client as unknown as Watched;
  const ask = (): Promise<boolean> => queryWithin(client, { text: "" }, patienceMs).then(() => isOpen(watched));
  if (watched.readyForQuery === false) return ask();
  if (watched.getTransactionStatus || statusByClient.has(client) || !watched.connection) return isOpen(watched);
  const known = { status: null as string | null };
  statusByClient.set(client, known);
  watched.connection.on("readyForQuery", ({ status }) => {
    known.status = status ?? null;
  });
  return ask();
}

/** `T`: in a transaction; `E`: in one that failed; `I`: in none. */
function isOpen(client: Watched): boolean {
  const status = client.getTransactionStatus ? client.getTransactionStatus() : statusByClient.get(client)?.status;
  return status === "T" || status === "E";
}
