import { expect, test } from "vitest";
import { jobActionNames, type Permission, permissions } from "../../src/dashboard/contract.ts";
import type { DashboardOptions } from "../../src/dashboard/server/index.ts";
import { type Route, routes } from "../../src/dashboard/server/routes.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { rememberingLogger } from "../support/log.ts";
import { sharedDatabase } from "../support/shared-database.ts";
import { type Desk, openDesk, type Told } from "./kit.ts";

/*
 * Every route, from the server's own table, asked by people who may do anything but what it needs. A route that is added is tested; one that
 * changes something without needing a permission fails the last test.
 */

const database = sharedDatabase();

/** Bodies that would do something, if they were let through. */
const bodies: Record<string, object> = {
  "actions/add": { task: "t" },
  check: { task: "t", payload: {} },
  "actions/pause": { target: { kind: "all" } },
  "actions/resume": { target: { kind: "all" } },
  "actions/runCron": { identifier: "nightly" },
  "actions/setLimit": { name: "l", kind: "concurrency", path: [], limit: 1 },
  "actions/clearLimit": { name: "l", kind: "concurrency", path: [] },
  "actions/unlockWorker": { worker: "w" },
};

async function ask(desk: Desk, route: Route, body: object): Promise<Told<{ error?: { code: string } }>> {
  return route.method === "GET" ? desk.get(route.path) : desk.post(route.path, body);
}

const changing = routes.filter(({ method }) => method === "POST");

function bodyOf(path: string, job: string, action: Permission): object {
  if (path === "bulk/preview") return { action, filter: { task: "t" } };
  if (path === "bulk")
    return { action, filter: { task: "t" }, upTo: "9999999", ...(action === "reschedule" && { priority: 1 }) };
  return bodies[path] ?? { ids: [job], ...(path === "actions/reschedule" && { priority: 1 }) };
}

/** The permission that a request needs, said again here: the table of routes must agree. */
function neededFor(path: string, action: Permission): Permission {
  if (path === "check") return "add";
  const [, name] = /^actions\/(\w+)$/.exec(path) ?? [];
  return (name as Permission | undefined) ?? action;
}

async function setUp(): Promise<{ job: string; bulk: string; snapshot: () => Promise<unknown> }> {
  const utils = await makeWorkerUtils({ pgPool: database().pool, logger: rememberingLogger().logger });
  const { id: job } = await utils.addJob("t", {});
  await utils.setLimit("l", { limit: 2 });
  const { id: bulk } = await utils.beginAction({ by: "boss", action: "retry", target: { filter: { task: "t" } } });
  const snapshot = async (): Promise<unknown> => ({
    jobs: await database().jobs(),
    pauses: await utils.listPauses(),
    limits: (await utils.listLimits()).map(({ name, limit }) => ({ name, limit })),
    audit: (await utils.listActions()).actions,
  });
  return { job, bulk, snapshot };
}

const people: [string, Partial<DashboardOptions>, (needed: Permission) => Partial<DashboardOptions>][] = [
  ["may only read", {}, () => ({ auth: () => ({ name: "eve" }) })],
  [
    "may do everything else",
    {},
    (needed) => ({ auth: () => ({ name: "eve", can: permissions.filter((one) => one !== needed) }) }),
  ],
  [
    "may do everything, but the dashboard may not",
    {},
    (needed) => ({
      auth: () => ({ name: "eve", can: "everything" }),
      can: permissions.filter((one) => one !== needed),
    }),
  ],
  [
    "may do everything, but the dashboard is read-only",
    {},
    () => ({ auth: () => ({ name: "eve", can: "everything" }), readOnly: true }),
  ],
];

test.each(people)(
  "nobody can do what they may not: a person who %s",
  async (_, __, optionsFor) => {
    const { job, bulk, snapshot } = await setUp();
    const before = await snapshot();
    for (const route of changing) {
      for (const action of route.path.startsWith("bulk") ? jobActionNames : (["retry"] as const)) {
        const needed = route.path === "bulk/stop" ? "retry" : neededFor(route.path, action);
        const desk = openDesk(database(), optionsFor(needed));
        const body = route.path === "bulk/stop" ? { id: bulk } : bodyOf(route.path, job, action);
        const { status, body: told } = await ask(desk, route, body);
        expect([route.path, action, status, told.error?.code]).toEqual([route.path, action, 403, "forbidden"]);
        await desk.dashboard.close();
      }
    }
    expect(await snapshot()).toEqual(before);
  },
  60_000,
);

const strangers: [string, DashboardOptions["auth"]][] = [
  ["a function that knows nobody", () => null],
  ["a function that answers nonsense", (() => ({ can: "everything" })) as never],
  ["a password", { basic: { username: "ann", password: "correct horse" } }],
  ["a token", { bearer: "0123456789abcdef" }],
];

test.each(strangers)("nobody who is not known gets anything: %s", async (_, auth) => {
  const { job, bulk, snapshot } = await setUp();
  const before = await snapshot();
  const desk = openDesk(database(), { auth });
  for (const route of routes) {
    const body = route.path === "bulk/stop" ? { id: bulk } : bodyOf(route.path, job, "retry");
    const { status, body: told } = await ask(desk, route, body);
    expect([route.path, status, told.error?.code]).toEqual([route.path, 401, "sign-in"]);
  }
  for (const path of ["", "jobs", "jobs/1", "assets/mark.svg", "index.html"]) {
    const response = await desk.dashboard.fetch(new Request(`http://localhost/${path}`));
    expect([path, response.status]).toEqual([path, 401]);
    expect(await response.text()).not.toContain("assets/app");
  }
  expect(await snapshot()).toEqual(before);
});

test("who has exactly the permission that is needed can do it", async () => {
  const { job } = await setUp();
  for (const route of changing.filter(({ path }) => path.startsWith("actions/"))) {
    const needed = neededFor(route.path, "retry");
    const desk = openDesk(database(), { auth: () => ({ name: "ann", can: [needed] }) });
    const { status } = await ask(desk, route, bodyOf(route.path, job, "retry"));
    // What does not exist is not found; but nobody was turned away.
    expect([route.path, [200, 404].includes(status)]).toEqual([route.path, true]);
    await desk.dashboard.close();
  }
});

test("a permission that does not exist lets nobody in", async () => {
  const desk = openDesk(database(), { auth: () => ({ name: "ann", can: ["admin" as never] }) });
  expect((await desk.get("session")).status).toBe(500);
});

test("what is read with GET changes nothing, and every other address needs a permission", async () => {
  for (const { method, path, needs } of routes) {
    if (method === "GET") {
      expect([path, await needs({} as never, {} as never)]).toEqual([path, null]);
    } else if (path !== "bulk/stop") {
      const needed = await needs({} as never, { body: { action: "retry" } } as never);
      expect([path, permissions.includes(needed as Permission)]).toEqual([path, true]);
    }
  }
});
