import type { Refusal } from "./refusal.ts";

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** On every answer. */
const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": policy,
  "x-frame-options": "DENY",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "x-robots-tag": "noindex, nofollow",
};

export interface AnswerOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cookies?: readonly string[];
}

/** An answer that no cache keeps, unless it says otherwise. */
export function answer(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream | null,
  type: string,
  { status = 200, headers, cookies }: AnswerOptions = {},
): Response {
  const all = new Headers({ ...safeHeaders, "cache-control": "no-store", "content-type": type, ...headers });
  for (const cookie of cookies ?? []) all.append("set-cookie", cookie);
  return new Response(body, { status, headers: all });
}

export function answerJson(value: unknown, options?: AnswerOptions): Response {
  return answer(JSON.stringify(value), "application/json; charset=utf-8", options);
}

export function answerRefusal(refusal: Refusal, options: AnswerOptions = {}): Response {
  return answerJson(refusal.body, { ...options, status: refusal.status, headers: refusal.headers });
}

/** To an address beside this one; relative, since a proxy may have changed the beginning of the path. */
export function redirect(to: string, cookies: readonly string[]): Response {
  return answer(null, "text/plain; charset=utf-8", { status: 303, headers: { location: to }, cookies });
}
