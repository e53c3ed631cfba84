import type { Job } from "../job.ts";
import { tracesOf } from "../trace-context.ts";
import { attribute, system } from "./attributes.ts";
import type { Tracing } from "./open-telemetry.ts";
import { endSpan, startSpan } from "./span.ts";

/** Runs a job inside a consumer span of its own, linked to the spans in which it was added. */
export function traceRun<End>(
  tracing: Tracing,
  job: Job,
  run: () => Promise<End>,
  errorOf: (end: End) => Error | null,
): Promise<End> {
  const { api } = tracing;
  const links = tracesOf(job).map(({ traceId, spanId, flags }) => ({
    context: { traceId, spanId, traceFlags: flags, isRemote: true },
  }));
  // Not a child of whatever was under way when this job happened to be claimed.
  const nothing = api.ROOT_CONTEXT;
  const span = startSpan(
    tracing,
    `run_job ${job.task_identifier}`,
    {
      kind: api.SpanKind.CONSUMER,
      links,
      attributes: {
        [attribute.system]: system,
        [attribute.operationName]: "run_job",
        [attribute.operationType]: "process",
        [attribute.destination]: job.task_identifier,
        [attribute.messageId]: job.id,
        [attribute.clientId]: job.locked_by ?? "",
        [attribute.attempt]: job.attempts,
      },
    },
    nothing,
  );
  if (!span) return run();
  return api.context.with(api.trace.setSpan(nothing, span), run).then((end) => {
    endSpan(api, span, errorOf(end));
    return end;
  });
}
