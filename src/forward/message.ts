import type { Job } from "../job.ts";
import { tracesOf } from "../trace-context.ts";

/** A job as it leaves. */
export interface ForwardMessage {
  /** The same on every attempt, so that the target can recognise a message that it has already: `hathi-<schema>-<job id>`. */
  readonly id: string;
  /** The name of the task. */
  readonly task: string;
  readonly payload: unknown;
  /** The payload as JSON. */
  readonly body: string;
  /** The job's named queue. Messages with the same key leave one after the other, in order. */
  readonly key: string | undefined;
  /** `hathi-task`, `hathi-job-id`, `hathi-attempt`, `hathi-priority`, `hathi-queue` if it has one, and `traceparent` if it was added in a trace. */
  readonly headers: Readonly<Record<string, string>>;
  readonly priority: number;
  readonly attempt: number;
}

export function makeMessage(job: Job, queueName: string | null, schema: string): ForwardMessage {
  const { payload, priority, attempts, task_identifier: task } = job;
  const [trace] = typeof payload === "object" && payload !== null ? tracesOf(payload) : [];
  const flags = trace?.flags.toString(16).padStart(2, "0");
  return {
    // Some targets allow no colon in an id, others no space.
    id: `hathi-${encodeURIComponent(schema)}-${job.id}`,
    task,
    payload,
    body: JSON.stringify(payload ?? {}),
    key: queueName ?? undefined,
    headers: {
      "hathi-task": encodeURI(task),
      "hathi-job-id": job.id,
      "hathi-attempt": String(attempts),
      "hathi-priority": String(priority),
      ...(queueName !== null && { "hathi-queue": encodeURI(queueName) }),
      ...(trace && { traceparent: `00-${trace.traceId}-${trace.spanId}-${flags}` }),
    },
    priority,
    attempt: attempts,
  };
}
