import { readdirSync, readFileSync } from "node:fs";

export interface MigrationFile {
  /** Such as `000001-baseline.sql`. */
  readonly name: string;
  readonly text: string;
}

/** Reads the migrations, in order. The build replaces this module with one that contains them: a bundle has no files beside it. */
export function readMigrationFiles(): MigrationFile[] {
  const folder = new URL("./migrations/", import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return names.sort().map((name) => ({ name, text: readFileSync(new URL(name, folder), "utf8") }));
}
