import { afterAll, beforeAll, describe } from "vitest";
import { freshDatabase, type TestDatabase } from "../support/database.ts";
import { loadOriginal } from "./original.ts";

/** One of the two that every spec runs on. */
export interface Side {
  readonly isOurs: boolean;
  /** The side's database, emptied for this test. */
  fresh(): Promise<TestDatabase>;
}

/** Runs the same specs on ours and on Graphile Worker 0.18. Where they may differ, the spec asks `isOurs` and says why. */
export function bothWays(specs: (side: Side) => void): void {
  describe("ours", () => runSpecs(specs, true, ourDatabase));
  describe("Graphile Worker", () => runSpecs(specs, false, originalDatabase));
}

function runSpecs(specs: (side: Side) => void, isOurs: boolean, make: () => Promise<TestDatabase>): void {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await make();
  });
  afterAll(() => database?.drop());
  specs({
    isOurs,
    async fresh() {
      await emptyDatabase(database);
      return database;
    },
  });
}

export function ourDatabase(): Promise<TestDatabase> {
  return freshDatabase({ cleanUp: () => undefined });
}

/** A database as Graphile Worker 0.18 makes it. */
export async function originalDatabase(): Promise<TestDatabase> {
  const database = await freshDatabase({ migrated: false, cleanUp: () => undefined });
  const { runMigrations } = await loadOriginal("0.18");
  await runMigrations({ connectionString: database.url });
  return database;
}

export async function emptyDatabase(database: TestDatabase): Promise<void> {
  await database.query(`
    truncate graphile_worker._private_jobs, graphile_worker._private_tasks, graphile_worker._private_job_queues,
      graphile_worker._private_known_crontabs restart identity`);
}
