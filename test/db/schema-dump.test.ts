import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";
import { dumpSchema } from "../support/dump-schema.ts";

// After a new migration: `npx vitest run test/db/schema-dump.test.ts -u`.
test("schema.sql shows where the migrations lead", async () => {
  await expect(await dumpSchema(await freshDatabase())).toMatchFileSnapshot("../../src/db/schema.sql");
});

test("migration files have numbers of their own", () => {
  const files = readdirSync(new URL("../../src/db/migrations", import.meta.url));
  expect(files.filter((file) => !/^\d{6}-[a-z0-9-]+\.sql$/.test(file))).toEqual([]);
  expect(new Set(files.map((file) => Number.parseInt(file, 10))).size).toBe(files.length);
});
