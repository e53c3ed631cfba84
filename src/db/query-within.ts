import type { PoolClient, QueryConfig, QueryResult, QueryResultRow } from "pg";
import { clearTimeout, setTimeout } from "../util/timers.ts";

/** As long as a timer can be set for. */
export const foreverMs = 2 ** 31 - 1;

/** Watches a query that was just sent, and calls `giveUp` when it knows that there will be no answer. Gives the way to stop. */
export type Watch = (giveUp: () => void) => () => void;

/**
 * A query that rejects, as one with pg's `query_timeout` does, when no answer came within the time. The timer is ours because
 * pg's follow the clock of a test that fakes timers, and there an hour may pass between a query and its answer. Whoever watches may know
 * earlier that there will be none.
 */
export function queryWithin<Row extends QueryResultRow>(
  client: PoolClient,
  query: QueryConfig,
  ms: number | undefined,
  watch?: Watch,
): Promise<QueryResult<Row>> {
  if (ms === undefined) return client.query<Row>(query);
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      stop();
      reject(new Error("Query read timeout"));
    };
    const timer = setTimeout(giveUp, Math.min(ms, foreverMs));
    const stopWatching = watch?.(giveUp);
    const stop = (): void => {
      clearTimeout(timer);
      stopWatching?.();
    };
    client
      .query<Row>(hasTimeout(client) ? ({ ...query, query_timeout: foreverMs } as QueryConfig) : query)
      .then(resolve, reject)
      .finally(stop);
  });
}

/** True if the client has a time limit of its own, which counts from now and not from the first byte. */
function hasTimeout(client: PoolClient): boolean {
  const { connectionParameters } = client as { connectionParameters?: { query_timeout?: unknown } };
  return Boolean(connectionParameters?.query_timeout);
}
