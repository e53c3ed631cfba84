import { JobSpecError, toError } from "../errors.ts";

/** The payload as JSON text; null, which stands for `{}`, if there is none. */
export function payloadToJson(payload: unknown, identifier: string): string | null {
  if (payload === undefined || payload === null) return null;
  let json: string | undefined;
  try {
    json = JSON.stringify(payload);
  } catch (thrown) {
    const error = toError(thrown);
    const [reason] = error.message.split("\n");
    throw new JobSpecError(`The payload for task '${identifier}' cannot be written as JSON: ${reason}.`, {
      cause: error,
    });
  }
  if (json !== undefined) return json;
  throw new JobSpecError(
    `The payload for task '${identifier}' cannot be written as JSON: it is a ${typeof payload}, not data.`,
  );
}
