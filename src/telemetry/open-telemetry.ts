import type * as OpenTelemetry from "@opentelemetry/api";
import { requireOptional } from "../util/require-optional.ts";
import { version } from "../version.ts";

export type Api = typeof OpenTelemetry;

/** Where spans go, once the application has set up tracing. */
export interface Tracing {
  readonly api: Api;
  readonly tracer: OpenTelemetry.Tracer;
}

/** Where `@opentelemetry/api`, of whichever copy and 1.x version, keeps what an SDK has registered. */
const registry = Symbol.for("opentelemetry.js.api.1");
type Registered = { readonly [registry]?: { readonly trace?: unknown } };

let api: Api | null | undefined;
let known: { readonly provider: unknown; readonly tracing: Tracing } | undefined;

/** Gives tracing if an SDK is registered; cheap enough to ask for every job. */
export function findTracing(): Tracing | undefined {
  // An application that does not trace need not load the package, which it may have for other reasons.
  if ((globalThis as Registered)[registry]?.trace === undefined) return undefined;
  if (api === undefined) api = requireOptional<Api>("@opentelemetry/api");
  if (api === null) return undefined;
  const provider = api.trace.getTracerProvider() as OpenTelemetry.ProxyTracerProvider;
  // Until an SDK is registered there is a proxy without anybody behind it.
  const isProxy = "getDelegateTracer" in provider;
  const behind = isProxy ? provider.getDelegate() : provider;
  if (known?.provider === behind) return known.tracing;
  if (isProxy && !provider.getDelegateTracer("hathi", version)) return undefined;
  const tracing = { api, tracer: provider.getTracer("hathi", version) };
  known = { provider: behind, tracing };
  return tracing;
}
