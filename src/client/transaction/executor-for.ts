import type { CallerTransaction } from "../../caller-transaction.ts";
import type { Database } from "../../db/database.ts";
import { forSchema } from "../../db/statement.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import { queryFor } from "./query-for.ts";
import { askForText, readRow, toText } from "./text-only.ts";

/** The part of a `Database` that the caller's transaction can offer. */
export type Executor = Pick<Database, "schema" | "run">;

/**
 * Runs statements inside a transaction that the caller has opened: what they write is there if the caller commits, and only then.
 * Rows look the same whichever library the transaction belongs to. Nothing is prepared under a name on the caller's connection.
 */
export function executorFor(tx: CallerTransaction, schema: string): Executor {
  const query = oneAtATime(tx, queryFor(tx));
  const run: Executor["run"] = async (statement, params) => {
    const text = forSchema(askForText(statement.text), schema);
    const rows = await query(text, statement.values(params).map(toText));
    return rows.map((row) => readRow(row));
  };
  return { schema, run };
}
