import pg from "pg";
import { expect, test } from "vitest";
import { describeDatabaseFailure } from "../../src/index.ts";
import { freshDatabase, testPool } from "../support/database.ts";

async function failureOf(url: string, query = "select 1"): Promise<string | undefined> {
  const pool = testPool(url, 1);
  return pool.query(query).then(
    () => undefined,
    (error: Error) => describeDatabaseFailure(error),
  );
}

test("what keeps the database from being used is one line with the way out", async () => {
  const db = await freshDatabase();
  const url = new URL(db.url);
  url.pathname = "/nowhere";
  expect(await failureOf(url.href)).toMatch(/^PostgreSQL says: database "nowhere" does not exist\. Create it/);
  expect(await failureOf("postgres://localhost:1/x")).toMatch(
    /^Could not connect to PostgreSQL at .*:1: nothing answers/,
  );
  expect(await failureOf(db.url, "select from nowhere.jobs")).toMatch(
    /the schema is not installed .* Run 'hathi migrate'/,
  );
  expect(await failureOf(db.url, "select graphile_worker.nothing()")).toMatch(
    /is not up to date\. Run 'hathi migrate'/,
  );
  expect(await failureOf(db.url, "select 1/0")).toBe("PostgreSQL says: division by zero (22012).");
  expect(describeDatabaseFailure(new Error("something else"))).toBeUndefined();
});

test("a wrong password and a missing one are told apart", async () => {
  const db = await freshDatabase();
  const url = new URL(db.url);
  url.password = "wrong";
  expect(await failureOf(url.href)).toMatch(/^PostgreSQL refused the login: .* Check user and password/);
  url.password = "";
  const client = new pg.Client({ connectionString: url.href });
  const error = await client.connect().catch((reason: Error) => reason);
  // After this error pg neither closes its connection nor ends when asked to.
  (client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  expect(describeDatabaseFailure(error as Error)).toMatch(
    /^PostgreSQL asks for a password, and none was given\. .* PGPASSWORD\.$/,
  );
});

test("SQLSTATEs stand in one file", async () => {
  const { readdirSync, readFileSync } = await import("node:fs");
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
  const found = files.filter((file) => /"(?:\d[0-9A-Z]{4}|GWB[A-Z]{2})"/.test(readFileSync(`src/${file}`, "utf8")));
  expect(found).toEqual(["db/sqlstate.ts"]);
});
