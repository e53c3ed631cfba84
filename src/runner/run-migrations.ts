import { compileSharedOptions } from "./compile.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { openDatabase } from "./open-database.ts";
import type { RunnerOptions } from "./runner-options.ts";

/** Installs the schema or brings it up to date, then disconnects. */
export async function runMigrations(options: RunnerOptions): Promise<void> {
  const compiled = compileSharedOptions(options);
  const { database, release } = openDatabase(compiled);
  try {
    await migrateSchema(database, compiled.ctx);
  } finally {
    await release();
  }
}
