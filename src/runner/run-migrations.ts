import type { SharedOptions } from "../config/options.ts";
import { compileSharedOptions } from "./compile.ts";
import { migrateSchema } from "./migrate-schema.ts";
import { openDatabase } from "./open-database.ts";

/** Installs the schema or brings it up to date, and closes what it opened. */
export async function runMigrations(options: SharedOptions): Promise<void> {
  const compiled = compileSharedOptions(options);
  const { database, release } = openDatabase(compiled);
  try {
    await migrateSchema(database, compiled.ctx);
  } finally {
    await release();
  }
}
