import type { Context, Span, SpanOptions } from "@opentelemetry/api";
import { attribute } from "./attributes.ts";
import type { Api, Tracing } from "./open-telemetry.ts";

/* The application's span processors may throw; neither a job nor an add must suffer from that. */

/** Starts a span; gives none if that does not work. */
export function startSpan({ tracer }: Tracing, name: string, options: SpanOptions, parent?: Context): Span | undefined {
  try {
    return tracer.startSpan(name, options, parent);
  } catch {
    return undefined;
  }
}

/** Ends a span as what it stands for ended. */
export function endSpan(api: Api, span: Span, error: Error | null): void {
  try {
    if (error) {
      span.recordException(error);
      span.setAttribute(attribute.errorType, error.name);
      span.setStatus({ code: api.SpanStatusCode.ERROR, message: error.message });
    }
    span.end();
  } catch {
    // The job ended as it ended.
  }
}
