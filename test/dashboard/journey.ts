import { createServer, request as forward } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "vitest";
import type { ActionResult, Session } from "../../src/dashboard/contract.ts";
import { readEvents } from "./kit.ts";

/** What a browser does with a dashboard that is mounted somewhere: pages, files, reading, changing, following. */
export async function takeJourney(mount: string, headers: Record<string, string> = {}): Promise<void> {
  const { origin } = new URL(mount);
  const get = (url: string | URL): Promise<Response> => fetch(url, { headers });
  // As a browser finds out where it is: by the page's <base>, from whichever page it begins.
  for (const page of [mount, `${mount}/`, `${mount}/jobs`, `${mount}/jobs/42`, `${mount}/tasks/mail/send`]) {
    const response = await get(page);
    expect([page, response.status, response.headers.get("content-type")]).toEqual([
      page,
      200,
      "text/html; charset=utf-8",
    ]);
    const html = await response.text();
    const [, base = ""] = /<base href="([^"]*)">/.exec(html) ?? [];
    expect([page, new URL(base, response.url).href]).toEqual([page, `${mount}/`]);
    const [, script = ""] = /<script type="module" src="([^"]+)"/.exec(html) ?? [];
    const file = await get(new URL(script, `${mount}/`));
    expect([script, file.status, file.headers.get("content-type")]).toEqual([
      script,
      200,
      "text/javascript; charset=utf-8",
    ]);
    expect((await file.text()).length).toBeGreaterThan(10_000);
  }
  expect((await get(`${mount}/nowhere`)).status).toBe(404);

  const session = (await (await get(`${mount}/api/session`)).json()) as Session;
  expect(session.schema).toBe("graphile_worker");

  const post = (path: string, body: unknown, more: Record<string, string> = {}): Promise<Response> =>
    fetch(`${mount}/api/${path}`, {
      method: "POST",
      headers: {
        ...headers,
        "content-type": "application/json",
        "x-hathi-dashboard": "1",
        "sec-fetch-site": "same-origin",
        origin,
        ...more,
      },
      body: JSON.stringify(body),
    });
  const added = (await (
    await post("actions/add", { task: "mounted", payload: { from: mount } })
  ).json()) as ActionResult;
  expect(added.changed).toBe(1);
  const refused = await post(
    "actions/add",
    { task: "mounted" },
    { "sec-fetch-site": "cross-site", origin: "https://evil.example.com" },
  );
  expect(refused.status).toBe(403);
  expect(((await (await post("actions/retry", { ids: [] })).json()) as { error: { code: string } }).error.code).toBe(
    "bad-request",
  );

  const stop = new AbortController();
  const stream = await fetch(`${mount}/api/stream?topic=job&id=${added.ids[0]}`, { headers, signal: stop.signal });
  const events = await readEvents(stream, (event) => event === "job");
  expect(events.map(([event]) => event)).toEqual(["ping", "job"]);
  expect(events[1]![1]).toMatchObject({ payload: { from: mount } });
  stop.abort();
}

export interface Proxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** A proxy that serves another machine's pages below `/tools`: it cuts that off, and names the other machine as the host. */
export async function startPrefixProxy(port: number): Promise<Proxy> {
  const server = createServer((request, response) => {
    const sent = forward(
      {
        port,
        host: "localhost",
        method: request.method,
        path: request.url!.replace(/^\/tools/, ""),
        headers: { ...request.headers, host: "internal.example:8080" },
      },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tools`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
