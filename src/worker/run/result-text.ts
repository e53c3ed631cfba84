import { messageOf } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { UnrecoverableError } from "../../job-errors.ts";

/** What one result may take as JSON. */
const maxResultBytes = 1_048_576;

/** What a task returned, as JSON. What cannot be kept fails the job permanently: its work is done, so another try would only repeat it. */
export function resultText({ task_identifier: task }: Job, result: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(result ?? null);
  } catch (thrown) {
    throw new UnrecoverableError(
      `The result of task '${task}' cannot be kept, since it is no JSON: ${messageOf(thrown)}`,
      {
        cause: thrown,
      },
    );
  }
  if (text === undefined)
    throw new UnrecoverableError(`The result of task '${task}' cannot be kept: it is a ${typeof result}.`);
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxResultBytes) return text;
  throw new UnrecoverableError(
    `The result of task '${task}' takes ${bytes} bytes, and at most ${maxResultBytes} are kept: store it elsewhere and return where.`,
  );
}
