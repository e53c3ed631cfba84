import { expect, test, vi } from "vitest";
import type { JobsPage, Session } from "../../src/dashboard/contract.ts";
import { freshDatabase } from "../support/database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { makeProject } from "../support/project.ts";
import { until } from "../support/wait.ts";

// Each test starts processes, and the machine may be busy.
vi.setConfig({ testTimeout: 120_000 });

/** What a browser does with the printed address. */
async function visit(
  address: string,
): Promise<{ get<T>(path: string): Promise<T>; post(path: string, body: object): Promise<Response> }> {
  const landed = await fetch(address, { redirect: "manual" });
  const [cookie = ""] = (landed.headers.getSetCookie()[0] ?? "").split(";");
  const base = new URL(landed.headers.get("location") ?? "", address);
  const page = await fetch(base, { headers: { cookie } });
  expect(await page.text()).toContain('<div id="app">');
  const headers = { cookie, "content-type": "application/json", "x-hathi-dashboard": "1" };
  return {
    get: async (path) => (await (await fetch(new URL(`api/${path}`, base), { headers })).json()) as never,
    post: (path, body) => fetch(new URL(`api/${path}`, base), { method: "POST", headers, body: JSON.stringify(body) }),
  };
}

const printed = /dashboard is at (http:\/\/127\.0\.0\.1:\d+\/\?token=\S+)/;

test("hathi --dashboard serves it beside the worker, with its tasks, its crontab and its metrics, until the worker ends", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({
    "tasks/hello.mjs": "export default () => undefined;",
    crontab: "0 4 * * * hello ?id=nightly",
  });
  const worker = startProgram(["--dashboard", "--dashboard-port", "0", "-c", db.url], { cwd });
  const [, address = ""] = await worker.says(printed);
  const { get, post } = await visit(address);
  expect(await get<Session>("session")).toMatchObject({
    tasks: [{ name: "hello" }],
    database: db.name,
    user: expect.any(String),
  });
  expect(await get("cron")).toMatchObject({ entries: [{ identifier: "nightly", canRunNow: true }] });
  expect((await post("actions/runCron", { identifier: "nightly" })).status).toBe(200);
  await until(async () => (await get<JobsPage>("jobs")).jobs.length === 0);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ code: 0 });
});

test("hathi dashboard looks without touching the schema, may be read-only, and says what was done to whom asks", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({});
  const [first, second] = [[], ["--read-only", "--title", "production"]].map((flags) =>
    startProgram(["dashboard", "--port", "0", ...flags, "-c", db.url], { cwd }),
  );
  const writer = await visit((await first!.says(printed))[1]!);
  expect((await writer.post("actions/add", { task: "mail" })).status).toBe(200);
  const reader = await visit((await second!.says(printed))[1]!);
  expect(await reader.get("session")).toMatchObject({ title: "production", isReadOnly: true, can: [] });
  expect((await reader.post("actions/add", { task: "mail" })).status).toBe(403);
  for (const program of [first!, second!]) {
    program.kill("SIGINT");
    expect(await program.ended).toMatchObject({ code: 0 });
  }
  const audit = await runProgram(["audit", "--json", "-c", db.url], { cwd });
  expect(JSON.parse(audit.stdout)).toMatchObject({
    actions: [{ action: "add", target: { task: "mail" }, changed: 1, state: "done" }],
    next: null,
  });
  const table = await runProgram(["audit", "--action", "add", "-c", db.url], { cwd });
  expect(table.stdout).toMatch(/^1 .* add +1 +done +\{"task":"mail"\}$/m);
  const deleted = await runProgram(["audit", "--delete-before", "0s", "--json", "-c", db.url], { cwd });
  expect(JSON.parse(deleted.stdout)).toEqual({ deleted: 1 });
});

test("a token of one's own opens it to other machines, and without one it refuses to start", async () => {
  const db = await freshDatabase();
  const { folder: cwd } = await makeProject({});
  const token = "a-token-of-ones-own-0123456789";
  const args = ["dashboard", "--port", "0", "--host", "0.0.0.0", "-c", db.url];
  expect(await runProgram(args, { cwd })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("set HATHI_DASHBOARD_TOKEN"),
  });
  const short = await runProgram(args, { cwd, env: { HATHI_DASHBOARD_TOKEN: "short" } });
  expect(short).toMatchObject({ code: 1, stderr: expect.stringContaining("16 characters") });
  const program = startProgram(args, { cwd, env: { HATHI_DASHBOARD_TOKEN: token } });
  const [, port] = await program.says(/dashboard is at http:\/\/0\.0\.0\.0:(\d+)\/$/m);
  const session = `http://127.0.0.1:${port}/api/session`;
  expect((await fetch(session)).status).toBe(401);
  expect((await fetch(session, { headers: { authorization: `Bearer ${token}` } })).status).toBe(200);
  program.kill("SIGTERM");
  await program.ended;
});

test("flags that cannot work are refused, and a schema that is not there is named", async () => {
  const db = await freshDatabase({ migrated: false });
  const { folder: cwd } = await makeProject({});
  const complaint = async (...args: string[]): Promise<string> => {
    const { code, stderr } = await runProgram([...args, "-c", db.url], { cwd });
    expect(code).not.toBe(0);
    return stderr;
  };
  expect(await complaint("--dashboard-port", "1")).toContain("--dashboard-port and --dashboard-host need --dashboard.");
  expect(await complaint("--once", "--dashboard")).toContain("--dashboard needs a worker that keeps running.");
  expect(await complaint("--dashboard", "--dashboard-port", "70000")).toContain("dashboard-port");
  expect(await complaint("dashboard", "--port", "0")).toContain(
    "is not installed or not up to date: run 'hathi migrate'",
  );
});
