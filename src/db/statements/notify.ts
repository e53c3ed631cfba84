import { shortPatienceMs, statement } from "../statement.ts";

/** Sends a notification of its own. Watched like every statement: on a connection that died without a word it would keep its pool from ending. */
export const notify = statement<{ channel: string; payload: string }, object>({
  name: "notify",
  patienceMs: shortPatienceMs,
  values: ({ channel, payload }) => [channel, payload],
  text: "select pg_catalog.pg_notify($1::text, $2::text)",
});
