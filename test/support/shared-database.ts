import { afterAll, beforeAll } from "vitest";
import { freshDatabase, type TestDatabase } from "./database.ts";

/** One database for all tests of a file or of a `describe`, for tests that only look at what they wrote themselves. */
export function sharedDatabase(): () => TestDatabase {
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    database = await freshDatabase({ cleanUp: () => undefined });
  });
  afterAll(() => database?.drop());
  return () => database!;
}
