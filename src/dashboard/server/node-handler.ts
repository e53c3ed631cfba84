import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** As the browser sees it, as far as the host app knows. */
export function pathOf(request: IncomingMessage): { readonly url: string; readonly mount: string | undefined } {
  const { originalUrl, baseUrl } = request as { originalUrl?: unknown; baseUrl?: unknown };
  const isMounted = typeof originalUrl === "string" && typeof baseUrl === "string" && originalUrl.startsWith(baseUrl);
  return isMounted ? { url: originalUrl, mount: baseUrl } : { url: request.url ?? "/", mount: undefined };
}

/** The request as the rest of the dashboard knows it; undefined if it is none that a browser would send. */
export function toRequest(request: IncomingMessage, url: string, signal: AbortSignal): Request | undefined {
  const { method = "GET" } = request;
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of [value].flat()) headers.append(name, one);
  }
  const hasBody =
    method !== "GET" &&
    method !== "HEAD" &&
    (request as { body?: unknown }).body === undefined &&
    !request.readableEnded;
  try {
    const path = url.replace(/^[^/]*\/\/[^/]*/, "").replace(/^\/*/, "/");
    const scheme = "encrypted" in request.socket ? "https" : "http";
    return new Request(`${scheme}://${hostOf(headers)}${path}`, {
      method,
      headers,
      signal,
      ...(hasBody && { body: Readable.toWeb(request) as ReadableStream<Uint8Array>, duplex: "half" }),
    } as RequestInit);
  } catch {
    return undefined;
  }
}

/** Only for the looks: no decision depends on it. */
function hostOf(headers: Headers): string {
  const host = headers.get("host") ?? "";
  return /^[\w.-]+(:\d+)?$|^\[[0-9a-f:]+\](:\d+)?$/i.test(host) ? host : "localhost";
}

export async function sendResponse(answer: Response, response: ServerResponse, isHead: boolean): Promise<void> {
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers) if (name !== "set-cookie") response.setHeader(name, value);
  const cookies = answer.headers.getSetCookie();
  if (cookies.length > 0) response.setHeader("set-cookie", cookies);
  if (isHead || !answer.body) {
    await answer.body?.cancel();
    response.end();
    return;
  }
  // A stream must reach the browser before its first event is there.
  response.flushHeaders();
  await pipeline(Readable.fromWeb(answer.body as Parameters<typeof Readable.fromWeb>[0]), response);
}
