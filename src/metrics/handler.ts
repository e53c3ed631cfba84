import type { IncomingMessage, ServerResponse } from "node:http";
import { errorTitle } from "../error-text.ts";
import type { Health } from "./health.ts";
import type { Metrics } from "./metrics.ts";

/** Answers `/metrics`, `/livez` and `/readyz`, below whatever path it is mounted at. */
export interface MetricsHandler {
  /** For servers that speak `Request` and `Response`: Hono, Next, Bun, Deno … */
  fetch(request: { readonly url: string; readonly method: string }): Promise<Response>;
  /** For `node:http`, Express, Fastify's raw requests and alike. */
  node(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

const prometheusType = "text/plain; version=0.0.4; charset=utf-8";
const plainType = "text/plain; charset=utf-8";

/** Makes handlers for `/metrics`, `/livez` and `/readyz`: `node` for `node:http` and Express, `fetch` for servers that use `Request` and `Response`. */
export function metricsHandler(metrics: Metrics): MetricsHandler {
  const answer = async (method: string, path: string): Promise<Answer> => {
    if (method !== "GET" && method !== "HEAD") return plain(405, "Only GET and HEAD are answered here.");
    switch (path.replace(/[?#].*$/s, "").replace(/^.*\//s, "")) {
      case "metrics":
        return { status: 200, type: prometheusType, body: await metrics.prometheus() };
      case "livez":
        return judged(metrics.live());
      case "readyz":
        return judged(metrics.ready());
      default:
        return plain(404, "There are /metrics, /livez and /readyz.");
    }
  };
  const safely = (method = "GET", path = "/"): Promise<Answer> =>
    answer(method, path).catch((error: unknown) => plain(500, errorTitle(error)));
  return {
    async fetch({ url, method }) {
      const { status, type, body } = await safely(method, new URL(url).pathname);
      return new Response(method === "HEAD" ? null : body, { status, headers: { "content-type": type } });
    },
    async node(request, response) {
      // Express cuts off the path that it is mounted at.
      const { originalUrl = request.url } = request as { originalUrl?: string };
      const { status, type, body } = await safely(request.method, originalUrl);
      response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
      response.end(request.method === "HEAD" ? undefined : body);
    },
  };
}

function judged({ ok, message }: Health): Answer {
  return plain(ok ? 200 : 503, message);
}

function plain(status: number, message: string): Answer {
  return { status, type: plainType, body: `${message}\n` };
}
