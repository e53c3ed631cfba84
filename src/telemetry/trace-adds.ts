import type { Attributes, Span } from "@opentelemetry/api";
import { toError } from "../errors.ts";
import type { AddJobFunction, AddJobsFunction, Job } from "../job.ts";
import { carryTrace, hideTraces, type TraceContext } from "../trace-context.ts";
import { attribute, system } from "./attributes.ts";
import { findTracing, type Tracing } from "./open-telemetry.ts";
import { endSpan, startSpan } from "./span.ts";

/** Gives each added job a producer span, whose trace the job carries. Without tracing nothing is different. */
export function traceAddJob(addJob: AddJobFunction): AddJobFunction {
  return (identifier, payload, spec) => {
    const tracing = findTracing();
    if (!tracing) return addJob(identifier, payload, spec);
    const about = { [attribute.operationName]: "add_job", [attribute.destination]: identifier };
    return inSpan(tracing, `add_job ${identifier}`, about, async (trace, span) => {
      const traced = trace ? (carryTrace(payload, trace) as typeof payload) : payload;
      const job = await addJob(identifier, traced, spec);
      span?.setAttribute(attribute.messageId, job.id);
      return hideTraces(job);
    });
  };
}

/** The same for many jobs, which share a span. */
export function traceAddJobs(addJobs: AddJobsFunction): AddJobsFunction {
  const traced = (specs: readonly object[], jobKeyPreserveRunAt?: boolean): Promise<readonly Job[]> => {
    const add = (given: readonly object[]): Promise<readonly Job[]> => addJobs(given as never, jobKeyPreserveRunAt);
    const tracing = findTracing();
    if (!tracing || !Array.isArray(specs) || specs.length === 0) return add(specs);
    const names = new Set(specs.map((spec) => Object(spec).identifier as unknown));
    const [name] = names.size === 1 ? names : [];
    const about = {
      [attribute.operationName]: "add_jobs",
      [attribute.batchCount]: specs.length,
      ...(typeof name === "string" && { [attribute.destination]: name }),
    };
    return inSpan(tracing, typeof name === "string" ? `add_jobs ${name}` : "add_jobs", about, async (trace) => {
      const carrying = (spec: unknown): object =>
        trace && typeof spec === "object" && spec !== null
          ? { ...spec, payload: carryTrace((spec as { payload?: unknown }).payload, trace) }
          : (spec as object);
      return (await add(specs.map(carrying))).map(hideTraces);
    });
  };
  return traced as AddJobsFunction;
}

async function inSpan<T>(
  tracing: Tracing,
  name: string,
  about: Attributes,
  add: (trace: TraceContext | undefined, span: Span | undefined) => Promise<T>,
): Promise<T> {
  const attributes = { [attribute.system]: system, [attribute.operationType]: "send", ...about };
  const { api } = tracing;
  const span = startSpan(tracing, name, { kind: api.SpanKind.PRODUCER, attributes });
  if (!span) return await add(undefined, undefined);
  const { traceId, spanId, traceFlags } = span.spanContext();
  const trace = api.isSpanContextValid(span.spanContext()) ? { traceId, spanId, flags: traceFlags } : undefined;
  try {
    // The statement's own span, if the driver is traced too, belongs inside.
    const result = await api.context.with(api.trace.setSpan(api.context.active(), span), () => add(trace, span));
    endSpan(api, span, null);
    return result;
  } catch (thrown) {
    endSpan(api, span, toError(thrown));
    throw thrown;
  }
}
