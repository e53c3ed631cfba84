import { type Permission, permissions, type Topic } from "../contract.ts";
import type { ActionName } from "./actions/action.ts";
import { carryOut } from "./actions/index.ts";
import { answerJson } from "./answers.ts";
import type { Caller } from "./authenticate.ts";
import { type BulkRuns, bulk, findBulk, permissionOf, previewBulk, stopBulk } from "./bulk.ts";
import type { DashboardContext, Page, PageRequest } from "./context.ts";
import { checkPayload, form } from "./new-payload.ts";
import { audit } from "./pages/audit.ts";
import { cron } from "./pages/cron.ts";
import { error, errors } from "./pages/errors.ts";
import { history } from "./pages/history.ts";
import { job } from "./pages/job.ts";
import { count, find, jobs } from "./pages/jobs.ts";
import { limits } from "./pages/limits.ts";
import { overview } from "./pages/overview.ts";
import { queues } from "./pages/queues.ts";
import { lastPoints } from "./pages/series.ts";
import { session } from "./pages/session.ts";
import { task, tasks } from "./pages/tasks.ts";
import { workers } from "./pages/workers.ts";
import { Fields } from "./read-fields.ts";
import { Refusal } from "./refusal.ts";
import type { Streams } from "./stream.ts";

/** Pages that can be looked at and followed. */
const topics = {
  overview,
  jobs,
  job,
  errors,
  error,
  tasks,
  task,
  queues,
  cron,
  workers,
  limits,
  history,
  audit,
  bulk,
} satisfies Record<Topic, Page<unknown>>;

export interface OpenDashboard {
  readonly context: DashboardContext;
  readonly bulkRuns: BulkRuns;
  readonly streams: Streams;
}

export interface Call extends PageRequest {
  /** Of a POST. */
  readonly body: unknown;
}

/** One address of the API. */
export interface Route {
  readonly method: "GET" | "POST";
  /** Below `api/`. */
  readonly path: string;
  /** What the caller must be permitted to do; null for reading. It may depend on what is asked for. */
  needs(dashboard: OpenDashboard, call: Call): Permission | null | Promise<Permission | null>;
  answer(dashboard: OpenDashboard, call: Call): Promise<Response>;
}

const reads = (path: string, page: Page<unknown>): Route => ({
  method: "GET",
  path,
  needs: () => null,
  answer: async ({ context }, call) => answerJson(await page(context, call)),
});

const acts = (name: Permission & ActionName): Route => ({
  method: "POST",
  path: `actions/${name}`,
  needs: () => name,
  answer: async ({ context }, { body, caller }) => answerJson(await carryOut(context, name, body, caller)),
});

/** Every address of the API. What is not here does not exist, and what is here is checked before it is answered. */
export const routes: readonly Route[] = [
  ...Object.entries(topics).map(([path, page]) => reads(path, page)),
  reads("session", session),
  reads("count", count),
  reads("find", find),
  reads("form", form),
  { method: "GET", path: "stream", needs: () => null, answer: follow },
  ...permissions.map(acts),
  {
    method: "POST",
    path: "check",
    needs: () => "add",
    answer: async ({ context }, { body }) => answerJson(await checkPayload(context, body)),
  },
  {
    method: "POST",
    path: "bulk/preview",
    needs: (_dashboard, { body }) => permissionOf(body),
    answer: async ({ context }, { body }) => answerJson(await previewBulk(context, body)),
  },
  {
    method: "POST",
    path: "bulk",
    needs: (_dashboard, { body }) => permissionOf(body),
    answer: async ({ bulkRuns }, { body, caller }) => answerJson(await bulkRuns.start(body, caller), { status: 202 }),
  },
  {
    method: "POST",
    path: "bulk/stop",
    needs: async ({ context }, { body }) => permissionOf(await findBulk(context, body)),
    answer: async ({ context }, { body, caller }) =>
      answerJson(await stopBulk(context, await findBulk(context, body), caller)),
  },
];

/** Finds the route of an address and lets the caller through who may use it. */
export async function answerCall(
  dashboard: OpenDashboard,
  method: string,
  path: string,
  call: Call,
): Promise<Response> {
  const route = findRoute(method, path);
  checkPermission(await route.needs(dashboard, call), call.caller);
  return route.answer(dashboard, call);
}

export function findRoute(method: string, path: string): Route {
  const there = routes.filter((route) => route.path === path);
  const wanted = method === "HEAD" ? "GET" : method;
  const found = there.find((route) => route.method === wanted);
  if (found) return found;
  if (there.length === 0) throw new Refusal("not-found", "There is nothing at this address.");
  const allowed = there.map((route) => route.method).join(", ");
  throw new Refusal("wrong-method", `This address takes ${allowed}.`, { allow: allowed });
}

function checkPermission(needed: Permission | null, { can }: Caller): void {
  if (needed === null || can.has(needed)) return;
  throw new Refusal("forbidden", `You are not permitted to do this; it needs the permission '${needed}'.`);
}

async function follow({ context, streams }: OpenDashboard, { query: given, caller }: Call): Promise<Response> {
  const { topic: name, ...query } = given;
  const topic = new Fields({ topic: name }, ["topic"]).oneOf("topic", Object.keys(topics) as Topic[]);
  const page: Page<unknown> = topics[topic];
  // A bad query is refused at once.
  let first: unknown = await page(context, { query, caller });
  const followed: DashboardContext = { ...context, cache: context.cache.forFollowers() };
  return streams.open(topic, async () => {
    const snapshot = first ?? (await page(followed, { query, caller }));
    first = undefined;
    return withLastPoints(snapshot);
  });
}

function withLastPoints(snapshot: unknown): unknown {
  const { series } = snapshot as { series?: Parameters<typeof lastPoints>[0] };
  return series ? { ...(snapshot as object), series: lastPoints(series) } : snapshot;
}
