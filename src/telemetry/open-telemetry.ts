import { createRequire } from "node:module";
import type * as OpenTelemetry from "@opentelemetry/api";
import { version } from "../version.ts";

export type Api = typeof OpenTelemetry;

/** Where spans go, once the application has set up tracing. */
export interface Tracing {
  readonly api: Api;
  readonly tracer: OpenTelemetry.Tracer;
}

let api: Api | null | undefined;
let known: { readonly provider: unknown; readonly tracing: Tracing } | undefined;

/** Gives tracing if `@opentelemetry/api` is installed and an SDK is registered; cheap enough to ask for every job. */
export function findTracing(): Tracing | undefined {
  if (api === undefined) api = findApi();
  if (api === null) return undefined;
  const provider = api.trace.getTracerProvider() as OpenTelemetry.ProxyTracerProvider;
  // Until an SDK is registered there is a proxy without anybody behind it.
  const tracer = "getDelegateTracer" in provider ? provider.getDelegate() : provider;
  if (known?.provider === tracer) return known.tracing;
  const isSetUp = !("getDelegateTracer" in provider) || provider.getDelegateTracer("hathi", version) !== undefined;
  if (!isSetUp) return undefined;
  const tracing = { api, tracer: provider.getTracer("hathi", version) };
  known = { provider: tracer, tracing };
  return tracing;
}

/** The application's own copy: it is an optional peer, so whether it is there is only known when we look. */
function findApi(): Api | null {
  try {
    return createRequire(import.meta.url)("@opentelemetry/api") as Api;
  } catch {
    return null;
  }
}
