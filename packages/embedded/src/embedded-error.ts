export type EmbeddedErrorCode =
  /** No PostgreSQL binary fits this machine, or the one found does not run. */
  | "NO_BINARY"
  /** The user id has no account, so PostgreSQL refuses to run under it. */
  | "NO_ACCOUNT"
  /** An option has a value that cannot work. */
  | "BAD_OPTION"
  /** The data folder belongs to another user or cannot be written. */
  | "DATA_DIR_DENIED"
  /** The data folder was made by another major version of PostgreSQL. */
  | "VERSION_MISMATCH"
  /** The password file and the server do not agree, or the file is gone. */
  | "WRONG_PASSWORD"
  /** The port asked for is taken by another program. */
  | "PORT_IN_USE"
  /** Another process holds the data folder's lock for too long. */
  | "BUSY"
  /** `initdb` failed. */
  | "INIT_FAILED"
  /** The server did not come up. */
  | "START_FAILED"
  /** The server did not shut down. */
  | "STOP_FAILED";

/** Anything that keeps the embedded server from running; `code` is stable, the message says the way out. */
export class EmbeddedError extends Error {
  override readonly name = "EmbeddedError";
  readonly code: EmbeddedErrorCode;

  constructor(code: EmbeddedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}
