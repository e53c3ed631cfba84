import {
  type ActionBodies,
  type ActionResult,
  type Answers,
  type ApiError,
  type ErrorCode,
  requestHeader,
} from "../../contract.ts";
import { base } from "./base.ts";
import { setServerTime } from "./clock.ts";

export type Query = Readonly<Record<string, string | undefined>>;

/** Why a request failed, in a sentence for people. */
export class RequestError extends Error {
  readonly code: ErrorCode | "unreachable";

  constructor(code: ErrorCode | "unreachable", message: string) {
    super(message);
    this.code = code;
  }
}

const timeoutMs = 15_000;

export function apiAddress(path: string, query: Query = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value) params.set(name, value);
  const text = params.toString();
  return `${base}/api/${path}${text ? `?${text}` : ""}`;
}

export function read<Name extends keyof Answers>(
  name: Name,
  query: Query = {},
  signal?: AbortSignal,
): Promise<Answers[Name]> {
  return request(apiAddress(name, query), {}, signal);
}

export function act<Name extends keyof ActionBodies>(name: Name, body: ActionBodies[Name]): Promise<ActionResult> {
  return post(`actions/${name}`, body);
}

export function post<Answer>(path: string, body: unknown): Promise<Answer> {
  return send(apiAddress(path), body);
}

/** Ends the session. */
export function signOut(): Promise<unknown> {
  return send(`${base}/sign-out`, {});
}

function send<Answer>(url: string, body: unknown): Promise<Answer> {
  return request(url, {
    method: "POST",
    headers: { "content-type": "application/json", [requestHeader]: "1" },
    body: JSON.stringify(body),
  });
}

async function request<Answer>(url: string, init: RequestInit, signal?: AbortSignal): Promise<Answer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  let response: Response;
  let answer: unknown;
  try {
    response = await fetch(url, {
      ...init,
      headers: { accept: "application/json", ...init.headers },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    answer = await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    const message = timeout.aborted ? "The server did not answer within 15 seconds." : "The server is unreachable.";
    throw new RequestError("unreachable", message);
  }
  if (!response.ok) {
    const { error } = answer as Partial<ApiError>;
    throw new RequestError(error?.code ?? "failed", error?.message ?? `The server answered ${response.status}.`);
  }
  noteTime(answer);
  return answer as Answer;
}

/** Snapshots carry the server's clock, by which their times are shown. */
export function noteTime(answer: unknown): void {
  const now = (answer as { now?: unknown } | null)?.now;
  if (typeof now === "string") setServerTime(Date.parse(now));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
