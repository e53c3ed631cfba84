import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { startProxy } from "../support/proxy.ts";
import { until } from "../support/wait.ts";
import { Arena, nothing } from "./kit.ts";

/** Less than what a statement without an answer is waited for at most. */
const withinMs = 20_000;

test("a worker whose connections were all forgotten goes on over new ones, while the server still holds the old sessions", async () => {
  const database = await freshDatabase();
  const arena = new Arena(database.url, 7);
  const proxy = await startProxy(arena.url);
  const { pid } = await arena.start({ connectionString: proxy.url });
  await arena.start();
  const doneBehind = (ids: ReadonlySet<string>): number =>
    arena.entries().filter((entry) => entry.pid === pid && entry.event === "done" && ids.has(entry.job)).length;
  const first = new Set(await arena.addMixture(150));
  await until(() => doneBehind(first) > 10, { what: "it works" });

  const sessions = "select pid, backend_start from pg_stat_activity where datname = current_database()";
  proxy.blackholeOpen();
  const before = await arena.ask<{ pid: number }>(sessions);
  // Added after the cut, so what it does of these was claimed over a new connection.
  const later = new Set<string>();
  await until(
    async () => {
      for (const id of await arena.addMixture(8)) later.add(id);
      return doneBehind(later) > 5;
    },
    { what: "it works again", withinMs },
  );
  const after = await arena.ask<{ pid: number }>(sessions);
  expect(before.filter((session) => after.some((other) => other.pid === session.pid)).length).toBeGreaterThan(4);
  expect(await arena.verdict()).toEqual(nothing);
}, 120_000);
