import { codeOf } from "../errors.ts";
import {
  invalidAuthorization,
  invalidPassword,
  noSuchDatabase,
  noSuchSchema,
  undefinedFunction,
  undefinedTable,
} from "./sqlstate.ts";

/** Describes in one line why the database cannot be reached or used, and what to do; undefined for any other error. */
export function describeDatabaseFailure(error: Error): string | undefined {
  const { address, port, hostname } = error as { address?: string; port?: number; hostname?: string };
  const code = codeOf(error);
  switch (code) {
    case "ECONNREFUSED":
      return `Could not connect to PostgreSQL at ${address ?? "localhost"}:${port ?? 5432}: nothing answers there. Is it running?`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `Could not connect to PostgreSQL: there is no host called '${hostname}'. Check the connection string.`;
    case "ETIMEDOUT":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `Could not connect to PostgreSQL at ${address ?? hostname}:${port ?? 5432}: the host cannot be reached (${code}).`;
    case "ENOENT":
      return /connect/.test(error.message)
        ? `Could not connect to PostgreSQL: there is no socket '${address}'. Is it running?`
        : undefined;
    case "ERR_INVALID_URL":
      return "The connection string is not a URL; it should look like postgres://user:password@host:5432/database.";
    case invalidPassword:
    case invalidAuthorization:
      return `PostgreSQL refused the login: ${error.message}. Check user and password in the connection string.`;
    case noSuchDatabase:
      return `PostgreSQL says: ${error.message}. Create it, or check the connection string.`;
    case undefinedTable:
    case noSuchSchema:
      return `${error.message}: the schema is not installed in this database. Run 'hathi migrate' first, or check --schema.`;
    case undefinedFunction:
      return `${error.message}: the schema is not up to date. Run 'hathi migrate' first.`;
    default:
      // pg says it in the words of the protocol.
      if (/client password must be a (non-empty )?string/.test(error.message)) {
        return "PostgreSQL asks for a password, and none was given. Put it into the connection string (postgres://user:password@host/database) or into PGPASSWORD.";
      }
      if (isOfServer(error)) return `PostgreSQL says: ${error.message} (${code}).`;
      return /^(self[- ]signed|unable to|The server does not support SSL|certificate)/i.test(error.message)
        ? `Could not connect to PostgreSQL: ${error.message}.`
        : undefined;
  }
}

/** Errors of the server carry a severity besides their five-character code. */
function isOfServer(error: Error): boolean {
  return "severity" in error && /^[0-9A-Z]{5}$/.test(codeOf(error) ?? "");
}
