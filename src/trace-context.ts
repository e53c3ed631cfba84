/*
 * A job carries the trace it was added in under the key `_trace` of its payload, as the Rust port writes it: of an object, or
 * of each object in an array (so that batches which are joined keep all of theirs). Tasks never see it.
 */

/** Where a job was added, as OpenTelemetry names it. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: number;
}

interface CarriedTrace {
  readonly trace_id: string;
  readonly span_id: string;
  readonly flags: number;
}

/** The payload with the trace in it; as it is, where it can carry none. A `_trace` of the user's own is left alone. */
export function carryTrace(payload: unknown, { traceId, spanId, flags }: TraceContext): unknown {
  const trace: CarriedTrace = { trace_id: traceId, span_id: spanId, flags };
  if (payload === undefined || payload === null) return { _trace: trace }; // no payload stands for {}
  return Array.isArray(payload) ? payload.map((item) => addTrace(item, trace)) : addTrace(payload, trace);
}

/** By job, and by item of a batch: what was hidden from its task. */
const hiddenTraces = new WeakMap<object, readonly TraceContext[]>();

/** Gives a job that is ours alone the payload that its task knows; what was hidden, `tracesOf` still tells. */
export function hideTraces<SomeJob extends { payload: unknown }>(job: SomeJob): SomeJob {
  const { payload } = job;
  if (typeof payload !== "object" || payload === null) return job;
  if (!Array.isArray(payload) && !("_trace" in payload)) return job;
  const traces: TraceContext[] = [];
  const hidden = Array.isArray(payload)
    ? payload.map((item) => removeTrace(item, traces))
    : removeTrace(payload, traces);
  if (traces.length === 0) return job;
  job.payload = hidden;
  hiddenTraces.set(job, traces);
  return job;
}

export function tracesOf(job: object): readonly TraceContext[] {
  return hiddenTraces.get(job) ?? [];
}

/** An item of a batch as it was before its trace was hidden, to be written back. */
export function withItsTrace(item: unknown): unknown {
  if (typeof item !== "object" || item === null) return item;
  const [trace] = tracesOf(item);
  return trace ? carryTrace(item, trace) : item;
}

function addTrace(value: unknown, trace: CarriedTrace): unknown {
  const isData =
    Object.prototype.toString.call(value) === "[object Object]" &&
    typeof (value as { toJSON?: unknown }).toJSON !== "function" &&
    !Object.hasOwn(value as object, "_trace");
  return isData ? { ...(value as object), _trace: trace } : value;
}

function removeTrace(value: unknown, traces: TraceContext[]): unknown {
  if (typeof value !== "object" || value === null || !("_trace" in value)) return value;
  const { _trace, ...rest } = value;
  if (!isCarried(_trace)) return value;
  const trace = { traceId: _trace.trace_id, spanId: _trace.span_id, flags: _trace.flags };
  traces.push(trace);
  hiddenTraces.set(rest, [trace]);
  return rest;
}

/** Strict, since what looks different is the user's own. */
function isCarried(trace: unknown): trace is CarriedTrace {
  if (typeof trace !== "object" || trace === null || Object.keys(trace).length !== 3) return false;
  const { trace_id, span_id, flags } = trace as Partial<CarriedTrace>;
  const isHex = (text: unknown, digits: number): boolean =>
    typeof text === "string" && text.length === digits && /^[0-9a-f]+$/.test(text);
  return isHex(trace_id, 32) && isHex(span_id, 16) && Number.isInteger(flags);
}
