/** The header that every POST carries; a form of another site cannot. */
export const requestHeader = "x-hathi-dashboard";

export type Moment = string;

/** A number that was counted up to a bound: `isMore` if there are more than `count`. */
export interface BoundedCount {
  readonly count: number;
  readonly isMore: boolean;
}

export interface ApiError {
  readonly error: {
    readonly code: ErrorCode;
    /** One sentence for people. */
    readonly message: string;
  };
}

export type ErrorCode =
  | "bad-request" // 400
  | "sign-in" // 401
  | "forbidden" // 403: not permitted, or from another site
  | "not-found" // 404
  | "wrong-method" // 405
  | "conflict" // 409
  | "too-large" // 413
  | "wrong-type" // 415: not JSON
  | "busy" // 503: the database did not answer in time
  | "failed"; // 500: a mistake of ours, logged by the server
