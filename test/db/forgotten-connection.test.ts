import { expect, test } from "vitest";
import { type Database, poolDatabase } from "../../src/db/database.ts";
import { isSilence } from "../../src/db/sqlstate.ts";
import { statement } from "../../src/db/statement.ts";
import { freshDatabase, testPool } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";

/** So long that no test waits for its end. */
const patienceMs = 600_000;
const sleepFor = statement<{ seconds: number }, { pid: number }>({
  name: "sleep_for",
  patienceMs,
  values: ({ seconds }) => [seconds],
  text: "select pg_backend_pid() as pid from pg_sleep($1::float8)",
});

function open(url: string): Database {
  return poolDatabase(testPool(url, 4), { schema: "graphile_worker", preparedStatements: true });
}

test("a statement on a connection that a firewall has forgotten fails soon, and the idle ones are not tried one after the other", async () => {
  const { url } = await freshDatabase();
  const proxy = await startProxy(url);
  const database = open(proxy.url);
  const before = await Promise.all([1, 2, 3, 4].map(() => database.run(sleepFor, { seconds: 0.5 })));
  expect(new Set(before.flat().map(({ pid }) => pid)).size).toBe(4);
  proxy.blackholeOpen();
  const error = await database.run(sleepFor, { seconds: 0 }).catch((thrown: unknown) => thrown);
  expect(isSilence(error)).toBe(true);
  const [row] = await database.run(sleepFor, { seconds: 0 });
  expect(before.flat()).not.toContainEqual(row);
}, 60_000);

test.each(["at its begin", "in the middle", "at its commit"])(
  "a transaction on a connection that a firewall has forgotten %s fails soon",
  async (when) => {
    const { url } = await freshDatabase();
    const proxy = await startProxy(url);
    const database = open(proxy.url);
    await database.run(sleepFor, { seconds: 0 });
    if (when === "at its begin") proxy.blackholeOpen();
    const error = await database
      .transaction(async (tx) => {
        if (when === "in the middle") proxy.blackholeOpen();
        await tx.run(sleepFor, { seconds: 0 });
        if (when === "at its commit") proxy.blackholeOpen();
      })
      .catch((thrown: unknown) => thrown);
    expect(isSilence(error)).toBe(true);
    expect(await database.transaction((tx) => tx.run(sleepFor, { seconds: 0 }))).toHaveLength(1);
  },
  60_000,
);

test("a statement that takes long, and one whose answer takes long, are waited for", async () => {
  const { url } = await freshDatabase();
  const proxy = await startProxy(url);
  const database = open(proxy.url);
  const longText = statement<object, { text: string }>({
    name: "long_text",
    patienceMs,
    values: () => [],
    text: "select repeat('x', 300000) as text",
  });
  const sleeping = open(url).run(sleepFor, { seconds: 7 });
  await database.run(sleepFor, { seconds: 0 });
  proxy.throttle(40_000);
  expect((await database.run(longText, {}))[0]!.text.length).toBe(300_000);
  expect(await sleeping).toHaveLength(1);
}, 60_000);
