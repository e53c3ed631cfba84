import { request as nodeRequest } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import {
  type JobDetails,
  type LimitsPage,
  permissions,
  redactedText,
  requestHeader,
  type Session,
} from "../../src/dashboard/contract.ts";
import { createDashboard, type DashboardOptions, serveDashboard } from "../../src/dashboard/server/index.ts";
import { routes } from "../../src/dashboard/server/routes.ts";
import { run } from "../../src/index.ts";
import { deferred } from "../../src/util/deferred.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { until } from "../support/wait.ts";
import { openDesk, origin } from "./kit.ts";

const database = sharedDatabase();
const token = "0123456789abcdef-token";
const at = (path: string, init?: RequestInit): Request => new Request(`${origin}/${path}`, init);

const wrong: [string, unknown, RegExp][] = [
  ["nothing", undefined, /needs 'auth', so that it is never open by mistake/],
  ["an empty object", {}, /'auth' must be \{ basic: … \}/],
  ["two ways at once", { basic: { username: "a", password: "12345678" }, bearer: token }, /'auth' must be/],
  ["a short token", { bearer: "short" }, /16 characters at least/],
  ["no token", { bearer: undefined }, /16 characters at least/],
  ["an empty list", { bearer: [] }, /'auth' must be/],
  ["a short password", { basic: { username: "ann", password: "1234567" } }, /8 characters at least/],
  ["a name with a colon", { basic: { username: "a:b", password: "12345678" } }, /without a colon/],
  ["an unknown permission", { bearer: { token, can: ["everything!"] } }, /must be 'everything' or a list of/],
];

test.each(wrong)("it does not start with %s in place of 'auth'", (_, auth, message) => {
  expect(() => createDashboard({ auth, connectionString: "postgres://localhost/x" } as DashboardOptions)).toThrow(
    message,
  );
});

test("a server of its own needs no 'auth' on this machine alone, where it makes a token, and refuses to start elsewhere", async () => {
  const { logger } = rememberingLogger();
  await expect(serveDashboard({ connectionString: database().url, host: "0.0.0.0", port: 0 })).rejects.toThrow(
    /listens to other machines \('0\.0\.0\.0'\) needs 'auth'/,
  );
  const server = await serveDashboard({ connectionString: database().url, port: 0, migrate: false, logger });
  try {
    const [base] = server.url.split("?");
    expect((await fetch(`${base}api/session`)).status).toBe(401);
    const landed = await fetch(server.url, { redirect: "manual" });
    expect(landed.status).toBe(303);
    expect(landed.headers.get("location")).toBe("./");
    const [cookie = ""] = landed.headers.getSetCookie();
    expect(cookie).toMatch(/^hathi_[0-9a-f]{12}=[0-9a-f]{64}; HttpOnly; SameSite=Lax$/);
    expect(cookie).not.toContain(new URL(server.url).searchParams.get("token"));
    const session = await fetch(`${base}api/session`, { headers: { cookie: cookie.split(";")[0]! } });
    expect(await session.json()).toMatchObject({ canSignOut: true, user: expect.any(String) });
  } finally {
    await server.close();
  }
});

test("tokens: the header, the form and the address sign in; a wrong one does not, and signing out ends it", async () => {
  const { dashboard, get } = openDesk(database(), {
    auth: {
      bearer: [
        { token, name: "ann", can: ["retry"] },
        { token: `${token}-2`, can: [] },
      ],
    },
  });
  const bearer = (value: string): Record<string, string> => ({ authorization: `Bearer ${value}` });
  expect((await get<Session>("session", bearer(token))).body).toMatchObject({
    user: "ann",
    can: ["retry"],
    canSignOut: false,
  });
  expect((await get<Session>("session", bearer(`${token}-2`))).body).toMatchObject({ user: null, can: [] });
  for (const value of ["", "x", token.slice(0, -1), `${token} `.repeat(2), token.toUpperCase()]) {
    expect((await get("session", bearer(value))).status).toBe(401);
  }

  const page = await dashboard.fetch(at("jobs/42"));
  expect([page.status, await page.text()]).toEqual([401, expect.stringContaining('<base href="../">')]);
  expect((await dashboard.fetch(at("sign-in.css"))).status).toBe(200);
  const form = (value: string, headers = {}): Promise<Response> =>
    dashboard.fetch(
      at("sign-in", {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
        body: `token=${value}`,
      }),
    );
  const failed = await form("wrong");
  expect([failed.status, failed.headers.getSetCookie()]).toEqual([401, []]);
  expect((await form(token, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  const signed = await form(token, { "x-forwarded-proto": "https" });
  expect([signed.status, signed.headers.get("location")]).toEqual([303, "./"]);
  const [cookie = ""] = signed.headers.getSetCookie();
  expect(cookie).toContain("; Secure");
  const session = { cookie: `other=1; ${cookie.split(";")[0]}` };
  expect((await get<Session>("session", session)).body).toMatchObject({ user: "ann", canSignOut: true });
  const [, name] = /^(\w+)=/.exec(cookie)!;
  expect((await get("session", { cookie: `${name}=${token}` })).status).toBe(401);
  const ended = await dashboard.fetch(
    at("sign-out", { method: "POST", headers: { ...session, [requestHeader]: "1", "sec-fetch-site": "same-origin" } }),
  );
  expect(ended.headers.getSetCookie()[0]).toMatch(new RegExp(`^${name}=; .*Max-Age=0`));
  expect((await dashboard.fetch(at(`?token=${token}x`))).status).toBe(401);
});

test("a session belongs to the folder of the dashboard, however one comes there", async () => {
  const { dashboard } = openDesk(database(), { auth: { bearer: token }, basePath: "/admin/hathi" });
  const go = async (path: string): Promise<unknown[]> => {
    const { status, headers } = await dashboard.fetch(new Request(`${origin}${path}`));
    return [status, headers.get("location"), headers.getSetCookie().length];
  };
  expect(await go(`/admin/hathi?token=${token}`)).toEqual([303, `hathi/?token=${token}`, 0]);
  expect(await go(`/admin/hathi/?token=${token}`)).toEqual([303, "./", 1]);
});

test("a name and a password", async () => {
  const { get } = openDesk(database(), {
    auth: {
      basic: [
        { username: "ann", password: "correct horse" },
        { username: "bob", password: "battery staple", can: [] },
      ],
    },
  });
  const basic = (text: string): Record<string, string> => ({
    authorization: `Basic ${Buffer.from(text).toString("base64")}`,
  });
  expect((await get<Session>("session", basic("ann:correct horse"))).body).toMatchObject({
    user: "ann",
    can: [...permissions],
  });
  expect((await get<Session>("session", basic("bob:battery staple"))).body).toMatchObject({ user: "bob", can: [] });
  for (const text of ["", "ann", "ann:", "ann:battery staple", "bob:correct horse", "ann:correct horse "]) {
    const { status, headers } = await get("session", basic(text));
    expect([status, headers.get("www-authenticate")]).toEqual([401, 'Basic realm="Hathi", charset="UTF-8"']);
  }
});

test("a function of the request decides, may answer itself, and is told nothing away if it fails", async () => {
  const { get, lines, dashboard } = openDesk(database(), {
    auth: async (request) => {
      const who = request.headers.get("x-user");
      if (who === "broken") throw new Error("select secret from users");
      if (who === "new") return Response.redirect("https://sign-in.example.com/", 302);
      return who ? { name: who, can: ["pause"] } : null;
    },
  });
  expect((await get<Session>("session", { "x-user": "ann" })).body).toMatchObject({ user: "ann", can: ["pause"] });
  expect((await get("session")).status).toBe(401);
  const away = await dashboard.fetch(at("", { headers: { "x-user": "new" } }));
  expect([away.status, away.headers.get("location")]).toEqual([302, "https://sign-in.example.com/"]);
  const failed = await get("session", { "x-user": "broken" });
  expect([failed.status, JSON.stringify(failed.body)]).toEqual([500, expect.not.stringContaining("secret")]);
  expect(lines.at(-1)).toMatchObject({ level: "error", message: "The dashboard could not answer GET api/session." });
});

const sites: [string, Record<string, string>, number][] = [
  ["the page itself", { "sec-fetch-site": "same-origin" }, 200],
  [
    "the page itself, behind a proxy that changes the host",
    { "sec-fetch-site": "same-origin", origin: "https://hathi.example.com", host: "10.0.0.7:4000" },
    200,
  ],
  ["another site", { "sec-fetch-site": "cross-site", origin: "https://evil.example.com" }, 403],
  ["another part of the site", { "sec-fetch-site": "same-site", origin: "https://blog.example.com" }, 403],
  [
    "an old browser on the page",
    { "sec-fetch-site": "", origin: "http://localhost:4000", host: "localhost:4000" },
    200,
  ],
  [
    "an old browser behind a proxy",
    {
      "sec-fetch-site": "",
      origin: "https://hathi.example.com",
      host: "10.0.0.7",
      "x-forwarded-host": "hathi.example.com",
    },
    200,
  ],
  [
    "an old browser on another site",
    { "sec-fetch-site": "", origin: "https://evil.example.com", host: "localhost:4000" },
    403,
  ],
  ["a sandboxed frame", { "sec-fetch-site": "", origin: "null", host: "localhost:4000" }, 403],
  ["a program", { "sec-fetch-site": "" }, 200],
];

test.each(sites)("a change that is asked for by %s", async (_, headers, expected) => {
  const { dashboard } = openDesk(database(), { auth: { bearer: token } });
  const given = new Headers({
    authorization: `Bearer ${token}`,
    "content-type": "application/json",
    "x-hathi-dashboard": "1",
  });
  for (const [name, value] of Object.entries(headers)) if (value) given.set(name, value);
  const ask = (): Promise<Response> =>
    dashboard.fetch(at("api/actions/resume", { method: "POST", headers: given, body: '{"target":{"kind":"all"}}' }));
  expect((await ask()).status).toBe(expected);
  // A form of another site cannot send this.
  given.delete("x-hathi-dashboard");
  expect((await ask()).status).toBe(403);
});

test("every address that changes something refuses other sites, forms and pages that are not ours", async () => {
  const { dashboard } = openDesk(database(), { auth: "host" });
  const ours = { "content-type": "application/json", "x-hathi-dashboard": "1", "sec-fetch-site": "same-origin" };
  const foreign: [Record<string, string>, number][] = [
    [{ ...ours, "sec-fetch-site": "cross-site" }, 403],
    [{ ...ours, "sec-fetch-site": "same-site" }, 403],
    [{ ...ours, "x-hathi-dashboard": "" }, 403],
    [{ ...ours, "content-type": "text/plain" }, 415],
    [{ ...ours, "content-type": "application/x-www-form-urlencoded" }, 415],
  ];
  const changing = routes.filter(({ method }) => method !== "GET");
  expect(changing.length).toBeGreaterThan(15);
  for (const { path } of changing) {
    for (const [headers, expected] of foreign) {
      const given = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ""));
      const response = await dashboard.fetch(at(`api/${path}`, { method: "POST", headers: given, body: "{}" }));
      expect([path, headers, response.status]).toEqual([path, headers, expected]);
    }
    // With GET, which a picture or a link of another site can send, there is nothing.
    if (!routes.some((route) => route.path === path && route.method === "GET")) {
      expect([path, (await dashboard.fetch(at(`api/${path}`))).status]).toEqual([path, 405]);
    }
  }
  expect((await dashboard.fetch(at("sign-out", { method: "POST", headers: foreign[0]![0] }))).status).toBe(403);
});

test("a form of another site, which can send plain text with a session, changes nothing", async () => {
  const { dashboard } = openDesk(database(), { auth: "host" });
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
    const response = await dashboard.fetch(
      at("api/actions/pause", {
        method: "POST",
        headers: { "content-type": type, "x-hathi-dashboard": "1" },
        body: '{"target":{"kind":"all"}}',
      }),
    );
    expect(response.status).toBe(415);
  }
  const preflight = await dashboard.fetch(
    at("api/actions/pause", {
      method: "OPTIONS",
      headers: { origin: "https://evil.example.com", "access-control-request-method": "POST" },
    }),
  );
  expect(preflight.status).toBe(403);
  expect(preflight.headers.get("access-control-allow-origin")).toBeNull();
});

test("every answer forbids scripts and styles from elsewhere, frames, referrers and guessing of types", async () => {
  const { dashboard } = openDesk(database(), { auth: { bearer: token } });
  const auth = { authorization: `Bearer ${token}` };
  for (const [path, headers] of [
    ["", auth],
    ["", {}],
    ["jobs/1", auth],
    ["assets/mark.svg", auth],
    ["api/session", auth],
    ["api/session", {}],
    ["api/none", auth],
    ["nowhere", auth],
  ] as const) {
    const response = await dashboard.fetch(at(path, { headers }));
    const policy = response.headers.get("content-security-policy")!;
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "x-frame-options": "DENY",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-resource-policy": "same-origin",
    });
    if (!path.startsWith("assets")) expect(response.headers.get("cache-control")).toContain("no-store");
    if (response.headers.get("content-type")?.startsWith("text/html")) {
      const html = await response.text();
      expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|javascript:/i);
    } else await response.body?.cancel();
  }
});

test("bodies are limited, however they arrive", async () => {
  const { dashboard } = openDesk(database(), {});
  const headers = { "content-type": "application/json", "x-hathi-dashboard": "1" };
  const large = JSON.stringify({ task: "t", payload: "x".repeat(300_000) });
  expect((await dashboard.fetch(at("api/actions/add", { method: "POST", headers, body: large }))).status).toBe(413);
  // Without a length, and without an end.
  let sent = 0;
  const endless = new ReadableStream({
    pull: (controller) => {
      sent += 65_536;
      controller.enqueue(new Uint8Array(65_536));
    },
  });
  expect(
    (
      await dashboard.fetch(
        at("api/actions/add", { method: "POST", headers, body: endless, duplex: "half" } as RequestInit),
      )
    ).status,
  ).toBe(413);
  expect(sent).toBeLessThan(1_000_000);
});

test("paths lead nowhere else", async () => {
  const server = await serveDashboard({
    connectionString: database().url,
    port: 0,
    migrate: false,
    logger: rememberingLogger().logger,
    auth: "host",
  });
  try {
    const { hostname, port } = new URL(server.url);
    for (const path of [
      "/assets/../../package.json",
      "/assets/..%2f..%2fpackage.json",
      "/assets/%2e%2e/index.html",
      "//evil.example.com/",
      "/api/../../etc/passwd",
      "/%00",
      "/assets/",
    ]) {
      const { status, text, location } = await new Promise<{
        status: number;
        text: string;
        location: string | undefined;
      }>((resolve, reject) => {
        nodeRequest({ hostname, port, path }, (response) => {
          let text = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            text += chunk;
          });
          response.on("end", () =>
            resolve({ status: response.statusCode!, text, location: response.headers.location }),
          );
        })
          .on("error", reject)
          .end();
      });
      expect([path, status]).toEqual([path, expect.toSatisfy((code: number) => code === 404 || code === 200)]);
      expect(text).not.toContain('"workspaces"');
      expect(location).toBeUndefined();
    }
  } finally {
    await server.close();
  }
});

test("a search does not tell, character by character, what is hidden", async () => {
  const { get, post } = openDesk(database(), {});
  await post("actions/add", { task: "secretive", payload: { password: "hunter2", note: "visible" } });
  const found = async (search: string): Promise<number> =>
    (await get<{ jobs: unknown[] }>(`jobs?task=secretive&search=${search}`)).body.jobs.length;
  expect([await found("visible"), await found("hunter2"), await found("hun"), await found("password")]).toEqual([
    1, 0, 0, 1,
  ]);
  const preview = await post<{ count: number }>("bulk/preview", {
    action: "retry",
    filter: { task: "secretive", search: "hunter2" },
  });
  expect(preview.body.count).toBe(0);
  expect((await get<{ count: number }>("count?search=hunter2")).body.count).toBe(0);
});

test("the keys of a limit are parts of payloads: where those are hidden, no page and no message has them", async () => {
  const { logger } = rememberingLogger();
  const held = deferred();
  const runner = await run({
    pgPool: database().pool,
    logger,
    noHandleSignals: true,
    concurrency: 3,
    taskList: { call: () => held.promise },
    taskOptions: { call: { concurrency: { limit: 1, key: "account.apiKey" } } },
  });
  onTestFinished(async () => {
    held.resolve();
    await runner.stop();
  });
  const payload = { account: { apiKey: "sk-hush-1" } };
  await runner.addJob("call", payload);
  const { id: waiting } = await runner.addJob("call", payload);
  for (const further of [{}, { account: { apiKey: { inner: "sk-hush-3" } } }]) {
    await runner.addJob("call", further);
    await runner.addJob("call", further);
  }
  const limit = { name: "call", kind: "concurrency", path: ["account", "apiKey"] };
  // That jobs have no key is no secret. A key that is an object may contain what is.
  for (const [redact, shown] of [
    [undefined, [redactedText, redactedText]],
    [["account"], [redactedText, redactedText]],
    [["**.inner"], ["sk-hush-1", redactedText]],
    [[], ["sk-hush-1", '{"inner":"sk-hush-3"}']],
  ] as const) {
    const isHidden = shown[0] === redactedText;
    const { get, post } = openDesk(database(), redact ? { redact } : {});
    const found = await until(async () => {
      const page = (await get<LimitsPage>("limits")).body.limits.find(({ name }) => name === "call");
      return page && page.waitingKeys.length === 3 && page;
    });
    const set = await post<{ message: string }>("actions/setLimit", { ...limit, key: "sk-hush-2", limit: 3 });
    expect(set.status).toBe(200);
    const limited = await until(async () => {
      const { why } = (await get<JobDetails>(`job?id=${waiting}`)).body;
      return why.find(({ kind }) => kind === "limited");
    });
    expect(limited.message).toContain("1 of 1 places are taken");
    const pages = [
      found,
      set.body,
      ...(await Promise.all(
        ["limits", "task?name=call", "audit", `job?id=${waiting}`, "jobs?task=call", "overview"].map(
          async (path) => (await get(path)).body,
        ),
      )),
    ];
    expect(found.waitingKeys.map(({ key }) => key).sort()).toEqual(["", ...shown]);
    expect([redact, JSON.stringify(pages).includes("sk-hush")]).toEqual([redact, !isHidden]);
    expect(limited.message.includes(redactedText)).toBe(isHidden);
  }
});

test("what goes wrong in the database is not told", async () => {
  const { get, lines } = openDesk(database(), { connectionString: "postgres://nobody:wrong@127.0.0.1:1/none" });
  const { status, body } = await get("session");
  expect([status, body]).toEqual([
    503,
    { error: { code: "busy", message: "The database did not answer in time. Try again, or ask for less." } },
  ]);
  expect(JSON.stringify(lines)).not.toContain("wrong");
});
