/** An index that a migration makes, taken out of its file. */
export interface IndexStatement {
  readonly name: string;
  readonly table: string;
  /** Builds it beside readers and writers; cannot run in a transaction. */
  readonly text: string;
}

/** Statements that begin a line; function bodies are indented. */
const createIndex = /^create (unique )?index (?:if not exists )?(\w+)(\s+on graphile_worker\.(\w+)[^;]*;)\n?/gim;

/** Takes the indexes of tables that exist out of a migration: those tables may have rows, and others write to them. */
export function splitIndexes(
  text: string,
  hasTable: (name: string) => boolean,
): { rest: string; indexes: IndexStatement[] } {
  const indexes: IndexStatement[] = [];
  const rest = text.replace(createIndex, (statement, unique = "", name: string, on: string, table: string) => {
    if (!hasTable(table)) return statement;
    indexes.push({ name, table, text: `create ${unique}index concurrently ${name}${on}` });
    return "";
  });
  return { rest, indexes };
}
