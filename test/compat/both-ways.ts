import { afterAll, beforeAll, describe } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { loadOriginal } from "./original.ts";

/** One of the two that every spec runs on. */
export interface Side {
  readonly name: string;
  readonly isOurs: boolean;
  /** A database with the side's schema in it, for this test only. */
  fresh(): Promise<TestDatabase>;
}

/** Runs the same specs on ours and on Graphile Worker 0.18. Where they may differ, the spec asks `isOurs` and says why. */
export function bothWays(specs: (side: Side) => void): void {
  describe("ours", () => specs({ name: "ours", isOurs: true, fresh: () => freshDatabase() }));

  describe("Graphile Worker", () => {
    let template: TestDatabase | undefined;
    beforeAll(async () => {
      template = await originalTemplate();
    });
    afterAll(() => template?.drop());
    specs({ name: "Graphile Worker", isOurs: false, fresh: () => freshDatabase({ template: template?.name ?? "" }) });
  });
}

/** A database as Graphile Worker 0.18 makes it, with nobody connected, so that it can be copied. */
export async function originalTemplate(): Promise<TestDatabase> {
  const database = await freshDatabase({ migrated: false, cleanUp: () => undefined });
  const { runMigrations } = await loadOriginal("0.18");
  await runMigrations({ connectionString: database.url });
  return database;
}
