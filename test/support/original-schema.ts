import { loadOriginal, type OriginalVersion } from "../compat/original.ts";
import { freshDatabase, type TestDatabase } from "./database.ts";

/** A database with the schema that a version of Graphile Worker installs. */
export async function originalSchema(version: OriginalVersion): Promise<TestDatabase> {
  const database = await freshDatabase({ migrated: false });
  const { runMigrations } = await loadOriginal(version);
  await runMigrations({ connectionString: database.url });
  return database;
}
