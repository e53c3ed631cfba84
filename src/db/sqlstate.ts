import { codeOf, isError } from "../errors.ts";

/** The SQLSTATEs (and Node's own codes) that we act on, and what each means to us. */

/** Another session was creating the same object at the same time. */
const clashes = new Set(["23505", "42P06", "42P07", "42710"]);

/** The database changed its mind about this transaction; the same statement may well succeed at once. */
const repeatable = new Set(["40001", "40P01"]);

/** The database is unreachable for now. */
const unreachable = new Set([
  "25006", // read-only: a fail-over is under way, and we talk to the wrong side
  "53000", // out of resources: disk, memory, connections
  "53100",
  "53200",
  "53300",
  "55P03", // lock not available
  "57014", // cancelled
  "57P01", // terminated by an administrator
  "57P02", // crash of another backend
  "57P03", // starting up or shutting down
  "57P05", // idle session timeout
  "25P03", // idle in transaction timeout
  "25P04", // transaction timeout
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** A pooler between us and the database handed us another backend than the one the statement was prepared on. */
const brokenPrepared = new Set(["42P05", "26000", "08P01"]);

export const undefinedTable = "42P01";
export const undefinedColumn = "42703";
export const lockNotAvailable = "55P03";
export const insufficientPrivilege = "42501";
export const undefinedFunction = "42883";
export const noSuchSchema = "3F000";

/** True if an error means that the schema is not installed, or older than this version. */
export function isSchemaMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefinedTable || code === noSuchSchema;
}
export const noSuchDatabase = "3D000";
export const invalidPassword = "28P01";
export const invalidAuthorization = "28000";

export function isClash(error: unknown): boolean {
  return clashes.has(codeOf(error) ?? "");
}

export function isRepeatable(error: unknown): boolean {
  return repeatable.has(codeOf(error) ?? "") || isMisrouted(error);
}

/** A partition was attached while the statement was about to write to the default one. */
function isMisrouted(error: unknown): boolean {
  if (codeOf(error) !== "23514") return false;
  const { table } = error as { readonly table?: unknown };
  return typeof table === "string" && table.startsWith("_hathi_history_");
}

/** True for faults of the connection and of a server that stops, starts or is full. */
export function isUnreachable(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return unreachable.has(code) || code.startsWith("08");
  // node-postgres gives these no code.
  return (
    isError(error) &&
    /Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|not queryable|Client was closed/i.test(
      error.message,
    )
  );
}

/** True when no answer came within the time that we were ready to wait. */
export function isSilence(error: unknown): boolean {
  return isError(error) && error.message === "Query read timeout";
}

/** Faults of the way to the database after which a statement may have gone through without our hearing of it. */
const inDoubt = new Set(["57P01", "57P02", "ECONNRESET", "ECONNABORTED", "EPIPE", "ETIMEDOUT"]);

/** True if the statement may have been carried out all the same. */
export function isInDoubt(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined) return inDoubt.has(code) || code.startsWith("08");
  return isError(error) && /Connection terminated|Query read timeout/i.test(error.message);
}

/** True if an error passes by itself: the database is unreachable, full or busy, or asks for the transaction to be repeated. */
export function isTransient(error: unknown): boolean {
  return isUnreachable(error) || isRepeatable(error);
}

/** True if PostgreSQL could not take a value: it is out of range, say, or not what its type expects. */
export function isBadValue(error: unknown): boolean {
  return /^22/.test(codeOf(error) ?? "");
}

/** True when the values themselves are at fault: the same statement would be refused again, whenever it is sent. */
export function isRefused(error: unknown): boolean {
  return isBadValue(error) || /^(?:23|GWB)/.test(codeOf(error) ?? "");
}

/** True for an error that PostgreSQL itself reported. */
export function isFromServer(error: unknown): boolean {
  return /^[0-9A-Z]{5}$/.test(codeOf(error) ?? "");
}

export function breaksPreparedStatements(error: unknown): boolean {
  const code = codeOf(error);
  if (code === "08P01") return isError(error) && /prepared statement/i.test(error.message);
  return brokenPrepared.has(code ?? "");
}
