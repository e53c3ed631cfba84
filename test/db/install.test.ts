import { expect, test } from "vitest";
import { freshDatabase } from "../support/database.ts";

test("a fresh install records Graphile Worker's ids with their breaking flags", async () => {
  const database = await freshDatabase();
  const rows = await database.query<{ id: number; breaking: boolean }>(
    "select id, breaking from graphile_worker.migrations order by id",
  );
  expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  expect(rows.filter(({ breaking }) => breaking).map(({ id }) => id)).toEqual([1, 3, 11, 13, 14, 16, 19]);
});
