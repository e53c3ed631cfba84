import type { Span } from "@opentelemetry/api";
import { attribute } from "./attributes.ts";
import type { Api } from "./open-telemetry.ts";

/** Ends a span as what it stands for ended. */
export function endSpan(api: Api, span: Span, error: Error | null): void {
  if (error) {
    span.recordException(error);
    span.setAttribute(attribute.errorType, error.name);
    span.setStatus({ code: api.SpanStatusCode.ERROR, message: error.message });
  }
  span.end();
}
