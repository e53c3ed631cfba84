import { fc, test as propertyTest } from "@fast-check/vitest";
import { afterAll, beforeAll, expect } from "vitest";
import { jobActionNames, jobStates, outcomes, spans } from "../../src/dashboard/contract.ts";
import { routes } from "../../src/dashboard/server/routes.ts";
import { makeWorkerUtils } from "../../src/index.ts";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { rememberingLogger } from "../support/log.ts";
import { times } from "../support/times.ts";
import { type Desk, openDesk } from "./kit.ts";

/* Whatever is sent to whichever address: the answer is one that the contract knows, never a mistake of ours, and tells nothing of the inside. */

let db: TestDatabase;
let desk: Desk;
beforeAll(async () => {
  db = await freshDatabase({ cleanUp: () => undefined });
  const utils = await makeWorkerUtils({ pgPool: db.pool, logger: rememberingLogger().logger });
  await utils.addJobs(
    Array.from({ length: 5 }, (_, n) => ({ identifier: "t", payload: { n }, jobKey: `k${n}`, queueName: "q" })),
  );
  desk = openDesk(db, { title: "fuzz" }, true);
});
afterAll(async () => {
  await desk.dashboard.close();
  await db.drop();
});

const word = fc.oneof(
  fc.constantFrom(
    "t",
    "q",
    "k1",
    "1",
    "0",
    "-1",
    "42",
    "9223372036854775807",
    "9999999999999999999",
    "1e9",
    "",
    " ",
    "null",
    "'",
    '"; drop table jobs; --',
    "%",
    "\\",
    "\0",
    "\ud800",
    "💥",
    "__proto__",
    "constructor",
  ),
  fc.constantFrom(...jobStates, ...outcomes, ...spans, ...jobActionNames, "everything"),
  fc.constantFrom(
    "2026-01-01T00:00:00Z",
    "2026-13-45T99:99:99Z",
    "275760-09-13T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "infinity",
    "now",
  ),
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.string({ maxLength: 2_000, minLength: 1_000 }),
);
const name = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(
      "state",
      "task",
      "queue",
      "key",
      "search",
      "error",
      "since",
      "until",
      "after",
      "limit",
      "id",
      "span",
      "name",
      "fingerprint",
      "outcome",
      "by",
      "action",
      "q",
      "topic",
      "filter",
      "ids",
      "upTo",
      "cursor",
      "count",
      "reason",
      "runAt",
      "priority",
      "maxAttempts",
      "payload",
      "flags",
      "copyOf",
      "keyMode",
      "target",
      "identifier",
      "worker",
      "kind",
      "path",
      "weight",
      "concurrency",
      "rate",
    ),
  },
  { weight: 1, arbitrary: word },
);
const value: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.integer(),
    fc.double(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie("any"), { maxLength: 4 }),
    fc.dictionary(name, tie("any"), { maxKeys: 5 }),
  ),
})).any;
const body = fc.oneof(
  { weight: 6, arbitrary: fc.dictionary(name, value, { maxKeys: 6 }) },
  {
    weight: 3,
    arbitrary: fc.record(
      {
        action: fc.constantFrom(...jobActionNames),
        filter: fc.dictionary(name, word, { maxKeys: 3 }),
        upTo: word,
        cursor: word,
        count: value,
      },
      { requiredKeys: ["action"] },
    ),
  },
  {
    weight: 2,
    arbitrary: fc.record(
      {
        ids: fc.array(word, { maxLength: 3 }),
        task: word,
        payload: value,
        target: fc.record({ kind: word, name: word }),
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: value },
);
const query = fc.array(fc.tuple(name, word), { maxLength: 4 });

/** What nobody outside should read. */
const inside =
  /\bat .*\.[cm]?[jt]s:\d+|node_modules|_private_|_hathi_|\bselect\b.*\bfrom\b|syntax error|invalid input|duplicate key|violates|bigint|timestamptz|pg_catalog/i;

async function check(response: Response, what: string): Promise<void> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (isStream) return await response.body?.cancel();
  const text = await response.text();
  expect([200, 202, 400, 403, 404, 405, 409, 413, 415], `${what} → ${response.status} ${text}`).toContain(
    response.status,
  );
  const told = JSON.parse(text) as { error?: { code: string; message: string } };
  if (response.ok) return;
  expect(told.error, what).toEqual({ code: expect.any(String), message: expect.any(String) });
  expect(told.error!.message, what).not.toMatch(inside);
}

const search = (pairs: [string, string][]): string => new URLSearchParams(pairs).toString();

propertyTest.prop(
  [fc.constantFrom(...routes.filter(({ method }) => method === "GET").map(({ path }) => path)), query],
  { numRuns: times(150) },
)("reading", async (path, pairs) => {
  const url = `http://localhost/api/${path}?${search(pairs)}`;
  await check(await desk.dashboard.fetch(new Request(url)), url);
});

propertyTest.prop(
  [fc.constantFrom(...routes.filter(({ method }) => method === "POST").map(({ path }) => path)), body],
  { numRuns: times(150) },
)("changing", async (path, given) => {
  const { dashboard } = desk;
  const text = JSON.stringify(given) ?? "";
  const headers = { "content-type": "application/json", "x-hathi-dashboard": "1" };
  await check(
    await dashboard.fetch(new Request(`http://localhost/api/${path}`, { method: "POST", headers, body: text })),
    `${path} ${text}`,
  );
});

propertyTest.prop(
  [
    fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"),
    fc.webPath(),
    fc.webQueryParameters(),
    fc.string(),
  ],
  { numRuns: times(100) },
)("any address, any method", async (method, path, pairs, text) => {
  const withBody = method !== "GET" && method !== "HEAD" ? { body: text } : {};
  const headers = { "x-hathi-dashboard": "1", "content-type": "application/json" };
  const response = await desk.dashboard.fetch(
    new Request(`http://localhost/${path.replace(/^\/+/, "")}?${pairs}`, { method, headers, ...withBody }),
  );
  const told = await response.text();
  expect(response.status, `${method} ${path} ${told}`).toBeLessThan(500);
  if (!response.ok) expect(told).not.toMatch(inside);
});
