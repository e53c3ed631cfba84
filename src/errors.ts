import { types } from "node:util";
import { canRead, peek, toPlain } from "./util/plain.ts";

const { isNativeError } = types;

/** Every error this library throws on purpose has a stable `code`; the text is for people. */
export abstract class HathiError extends Error {
  abstract readonly code: string;
  override get name(): string {
    return this.constructor.name;
  }
}

/** An option, or a combination of options, that cannot work. */
export class ConfigError extends HathiError {
  readonly code = "BAD_CONFIG";
}

/** A job, or a request about jobs, that the database could not accept; found before anything was written. */
export class JobSpecError extends HathiError {
  readonly code = "BAD_JOB_SPEC";
}

/** A payload that does not fit the definition of its task, and where it does not. */
export class PayloadError extends HathiError {
  readonly code = "BAD_PAYLOAD";
  readonly taskIdentifier: string;
  readonly issues: readonly { readonly path: string; readonly message: string }[];

  constructor(taskIdentifier: string, issues: PayloadError["issues"], prefix = "") {
    super(`${prefix}The payload does not fit task '${taskIdentifier}': ${describeIssues(issues)}`);
    this.taskIdentifier = taskIdentifier;
    this.issues = issues;
  }
}

/** As much as one can read at a glance. */
const issuesShown = 5;

function describeIssues(issues: PayloadError["issues"]): string {
  const sentences = issues
    .slice(0, issuesShown)
    .map(({ path, message }) => `${path === "" ? "" : `'${path}': `}${message.replace(/\.$/, "")}`);
  const more = issues.length > issuesShown ? `; and ${issues.length - issuesShown} more` : "";
  return `${sentences.join("; ")}${more}.`;
}

/** The schema was changed in a breaking way by a newer version. The process should end with exit code 57. */
export class SchemaTooNewError extends HathiError {
  readonly code = "SCHEMA_TOO_NEW";
  readonly found: number;
  readonly supported: number;

  constructor(found: number, supported: number) {
    super(
      `Database is using Graphile Worker schema revision ${found} which includes breaking migration ${found}, ` +
        `but the currently running worker only supports up to revision ${supported}: please upgrade it.`,
    );
    this.found = found;
    this.supported = supported;
  }
}

/** The schema is older than what can be adopted. */
export class SchemaTooOldError extends HathiError {
  readonly code = "SCHEMA_TOO_OLD";
  /** The command that brings the schema to where it can be adopted, for a POSIX shell. */
  readonly command: string;

  constructor(message: string, command: string) {
    super(message);
    this.command = command;
  }
}

/** The error of jobs that were still running when their worker stopped forcefully. */
export class ShutdownError extends HathiError {
  readonly code = "SHUTDOWN";
}

/** A hook rejected the operation or returned an unknown result. */
export class HookError extends HathiError {
  readonly code = "HOOK";
}

/** A `beforeJobSchedule` hook decided that this job is not to be added; nothing was written. */
export class JobSkippedError extends HathiError {
  readonly code = "JOB_SKIPPED";
  readonly identifier: string;

  constructor(identifier: string) {
    super(`A job for '${identifier}' was not added: a 'beforeJobSchedule' hook skipped it.`);
    this.identifier = identifier;
  }
}

/** A task may throw anything; from here on it is an Error whose name, message and stack can be read. */
export function toError(thrown: unknown): Error {
  return isSound(thrown) ? thrown : new Error(messageOf(thrown), { cause: thrown });
}

/** Looking at a value may throw: getters, and revoked proxies. */
export function isError(value: unknown): value is Error {
  try {
    return value instanceof Error || isNativeError(value);
  } catch {
    return false;
  }
}

function isSound(value: unknown): value is Error {
  try {
    if (!(value instanceof Error)) return false;
    const { name, message, stack } = value as { name: unknown; message: unknown; stack: unknown };
    return (
      typeof name === "string" && typeof message === "string" && (stack === undefined || typeof stack === "string")
    );
  } catch {
    return false;
  }
}

/** What a thrown value says, in the words that become `last_error`. */
export function messageOf(thrown: unknown): string {
  if (typeof thrown === "string" && thrown !== "") return thrown;
  const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
  if (!isObject) return `Non-error thrown: ${String(thrown)}`;
  const message = peek(thrown, "message");
  if (typeof message === "string" && message !== "") return message;
  if (!isError(thrown)) return `Non-error thrown: ${asText(thrown)}`;
  if (message !== undefined && message !== null && message !== "") return asText(message);
  const name = peek(thrown, "name");
  if (typeof name !== "string" || name === "") return "Non error or error without message thrown.";
  return canRead(thrown, "message") ? name : `${name} whose message cannot be read`;
}

/** Any value as a string, in JSON where it is an object. */
export function asText(value: unknown): string {
  const plain = toPlain(value);
  return typeof plain === "object" && plain !== null ? JSON.stringify(plain) : String(plain);
}

export function unreachable(value: never): never {
  throw new Error(`Unreachable: ${JSON.stringify(value)}`);
}

/** The code of an error: Node's, PostgreSQL's, or its author's. Looking at it never throws. */
export function codeOf(error: unknown): string | undefined {
  const code = peek(error, "code");
  return typeof code === "string" ? code : undefined;
}
