// Connects, says so, and migrates when it is told to.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import pg from "pg";

const [library, url, schema] = process.argv.slice(2);
const { Logger, runMigrations } = await import(pathToFileURL(library).href);
const pgPool = new pg.Pool({ connectionString: url, max: 1 });
pgPool.on("error", () => undefined);
(await pgPool.connect()).release();
console.log("ready");
const lines = createInterface({ input: process.stdin });
await once(lines, "line");
lines.close();
process.stdin.destroy();
const logger = new Logger(() => () => undefined);
try {
  await runMigrations({ pgPool, schema, logger });
  console.log("migrated");
} catch (error) {
  // The exit code is left as the migration set it.
  console.log(`${error.code}: ${error.message}`);
}
await pgPool.end();
