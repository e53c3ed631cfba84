/** The person at the terminal asked for something that cannot be: told in one line, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
