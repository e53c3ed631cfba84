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
      `The database is using Graphile Worker schema revision ${found} which includes breaking changes; ` +
        `this version understands revisions up to ${supported}. Please upgrade before running workers on it.`,
    );
    this.found = found;
    this.supported = supported;
  }
}

/** The schema is older than what can be adopted. */
export class SchemaTooOldError extends HathiError {
  readonly code = "SCHEMA_TOO_OLD";
}

/** Jobs that were still running when their worker was told to stop at once. */
export class ShutdownError extends HathiError {
  readonly code = "SHUTDOWN";
}

/** A lifecycle hook said no, or something that nobody understands. */
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

/** A task may throw anything; from here on it is an Error with a message. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown), { cause: thrown });
}

function messageOf(thrown: unknown): string {
  try {
    if (typeof thrown === "string" && thrown !== "") return thrown;
    if (typeof thrown === "object" && thrown !== null && "message" in thrown && typeof thrown.message === "string") {
      return thrown.message;
    }
    return `Non-error thrown: ${String(thrown)}`;
  } catch {
    return `Non-error thrown: ${typeof thrown}`; // some values cannot be looked at, or turned into text
  }
}

export function unreachable(value: never): never {
  throw new Error(`Unreachable: ${JSON.stringify(value)}`);
}
