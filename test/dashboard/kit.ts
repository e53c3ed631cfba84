import { onTestFinished } from "vitest";
import { requestHeader } from "../../src/dashboard/contract.ts";
import { createDashboard, type Dashboard, type DashboardOptions } from "../../src/dashboard/server/index.ts";
import type { TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";

/** A dashboard without a server, and what it logs. */
export interface Desk {
  readonly dashboard: Dashboard;
  readonly lines: readonly { level: string; message: string }[];
  /** GET below `api/`. */
  get<T>(path: string, headers?: Record<string, string>): Promise<Told<T>>;
  /** POST below `api/`, as the page does it. */
  post<T>(path: string, body: unknown, headers?: Record<string, string>): Promise<Told<T>>;
}

export interface Told<T> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

export const origin = "http://localhost:4000";

/** Opens a dashboard for this test; whoever comes may do everything, unless the options say otherwise. */
export function openDesk(db: TestDatabase, options: Partial<DashboardOptions> = {}, isKept = false): Desk {
  const { logger, lines } = rememberingLogger();
  // The machine may be busy.
  const patient = { migrate: false, statementTimeout: 30_000 };
  const place = options.pgPool ? {} : { connectionString: db.url };
  const dashboard = createDashboard({ auth: "host", ...place, ...patient, logger, ...options });
  if (!isKept) onTestFinished(() => dashboard.close());
  const ask = async <T>(request: Request): Promise<Told<T>> => {
    const { status, headers, ...answer } = await tell(await dashboard.fetch(request));
    return {
      status,
      headers,
      body: (headers.get("content-type")?.includes("json") ? JSON.parse(answer.text) : answer.text) as T,
    };
  };
  return {
    dashboard,
    lines,
    get: (path, headers = {}) => ask(new Request(`${origin}/api/${path}`, { headers })),
    post: (path, body, headers = {}) =>
      ask(
        new Request(`${origin}/api/${path}`, {
          method: "POST",
          headers: {
            "content-type": "application/json",
            [requestHeader]: "1",
            "sec-fetch-site": "same-origin",
            ...headers,
          },
          body: JSON.stringify(body),
        }),
      ),
  };
}

async function tell(response: Response): Promise<{ status: number; headers: Headers; text: string }> {
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Reads server-sent events until one satisfies, and ends the stream. */
export async function readEvents(
  response: Response,
  isEnough: (event: string, data: unknown) => boolean,
): Promise<[string, unknown][]> {
  const events: [string, unknown][] = [];
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const [, event = "", data = ""] = /^event: (.*)\ndata: (.*)$/.exec(text.slice(0, end)) ?? [];
      text = text.slice(end + 2);
      events.push([event, JSON.parse(data)]);
      if (isEnough(event, JSON.parse(data))) return events;
    }
  }
  return events;
}
