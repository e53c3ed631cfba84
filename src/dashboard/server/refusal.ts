import { ConfigError, HathiError, isBadValue, isTransient, JobSpecError, PayloadError } from "../../index.ts";
import type { ApiError, ErrorCode } from "../contract.ts";

const statusByCode: Readonly<Record<ErrorCode, number>> = {
  "bad-request": 400,
  "sign-in": 401,
  forbidden: 403,
  "not-found": 404,
  "wrong-method": 405,
  conflict: 409,
  "too-large": 413,
  "wrong-type": 415,
  failed: 500,
  busy: 503,
};

/** A request that is not carried out, with the reason for the caller. */
export class Refusal extends Error {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.code = code;
    this.headers = headers;
  }

  get status(): number {
    return statusByCode[this.code];
  }

  get body(): ApiError {
    return { error: { code: this.code, message: this.message } };
  }
}

export function badRequest(message: string): Refusal {
  return new Refusal("bad-request", message);
}

/**
 * What the answer to a caller says of an error: sentences that were written for people, and never a stack, a statement or a name inside the server. Undefined
 * if it is a mistake of ours.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (error instanceof JobSpecError || error instanceof PayloadError) return badRequest(error.message);
  if (error instanceof HathiError && !(error instanceof ConfigError)) return new Refusal("conflict", error.message);
  // A statement that took too long counts, too.
  if (isTransient(error)) {
    return new Refusal("busy", "The database did not answer in time. Try again, or ask for less.", {
      "retry-after": "2",
    });
  }
  if (isBadValue(error)) return badRequest("The database cannot take one of the values.");
  return undefined;
}
