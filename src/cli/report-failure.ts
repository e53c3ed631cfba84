import { HathiError, SchemaTooNewError, toError } from "../errors.ts";
import { UsageError } from "./usage-error.ts";

/** What is said on stderr, and the code to end with. */
export interface Failure {
  readonly message: string;
  readonly exitCode: number;
}

/** A mistake of the user's, or of the world's, becomes one line; anything else is a fault of ours and keeps its stack. */
export function describeFailure(thrown: unknown): Failure {
  const error = innermost(toError(thrown));
  if (error instanceof SchemaTooNewError) return { message: error.message, exitCode: 57 };
  const message = describeMistake(error) ?? error.stack ?? error.message;
  return { message, exitCode: 1 };
}

function describeMistake(error: Error): string | undefined {
  if (error instanceof UsageError || error instanceof HathiError || error.name === "EmbeddedError")
    return error.message;
  const { code, address, port, hostname, path } = error as NodeJS.ErrnoException & {
    address?: string;
    port?: number;
    hostname?: string;
  };
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
      // A socket's path, or a file that the user named.
      return /connect/.test(error.message)
        ? `Could not connect to PostgreSQL: there is no socket '${address ?? path}'. Is it running?`
        : `There is no file '${path}'.`;
    case "ERR_INVALID_URL":
      return "The connection string is not a URL; it should look like postgres://user:password@host:5432/database.";
    case "28P01":
    case "28000":
      return `PostgreSQL refused the login: ${error.message}. Check user and password in the connection string.`;
    case "3D000":
      return `PostgreSQL says: ${error.message}. Create it, or check the connection string.`;
    case "42P01":
    case "3F000":
      return `${error.message}: the schema is not installed in this database. Run 'hathi migrate' first, or check --schema.`;
    case "42883":
      return `${error.message}: the schema is not up to date. Run 'hathi migrate' first.`;
    default:
      if (isDatabaseError(error)) return `PostgreSQL says: ${error.message} (${code}).`;
      if (/^(self[- ]signed|unable to|The server does not support SSL|certificate)/i.test(error.message)) {
        return `Could not connect to PostgreSQL: ${error.message}.`;
      }
      return undefined;
  }
}

/** Errors of the server carry a severity besides their five-character code. */
function isDatabaseError(error: Error): boolean {
  return "severity" in error && "code" in error && /^[0-9A-Z]{5}$/.test(String(error.code));
}

/** Connecting to a name with several addresses fails with several errors. */
function innermost(error: Error): Error {
  return error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
}
