import { describeDatabaseFailure, errorStack, HathiError, SchemaTooNewError, toError } from "../index.ts";
import { UsageError } from "./usage-error.ts";

/** The message for stderr, and the exit code. */
export interface Failure {
  readonly message: string;
  readonly exitCode: number;
}

/** A mistake of the user's, or of the world's, becomes one line; anything else is a fault of ours and keeps its stack. */
export function describeFailure(thrown: unknown): Failure {
  const error = innermost(toError(thrown));
  if (error instanceof SchemaTooNewError) return { message: error.message, exitCode: 57 };
  return { message: describeMistake(error) ?? errorStack(error), exitCode: 1 };
}

function describeMistake(error: Error): string | undefined {
  if (error instanceof UsageError || error instanceof HathiError || error.name === "EmbeddedError")
    return error.message;
  const { code, path } = error as NodeJS.ErrnoException;
  const failure = describeDatabaseFailure(error);
  return failure ?? (code === "ENOENT" ? `There is no file '${path}'.` : undefined);
}

/** Connecting to a name with several addresses fails with several errors. */
function innermost(error: Error): Error {
  return error instanceof AggregateError && error.errors[0] instanceof Error ? error.errors[0] : error;
}
