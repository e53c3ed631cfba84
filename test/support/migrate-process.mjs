// Connects, says so, and migrates when it is told to.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import pg from "pg";

const [library, url, schema] = process.argv.slice(2);
const { migrate } = await import(new URL("db/migrate.js", pathToFileURL(library)).href);
const pool = new pg.Pool({ connectionString: url, max: 1 });
const client = await pool.connect();
console.log("ready");
const lines = createInterface({ input: process.stdin });
await once(lines, "line");
lines.close();
process.stdin.destroy();
try {
  await migrate({ client, schema, logger: { warn: console.log } });
  console.log("migrated");
} catch (error) {
  // The exit code is left as `migrate` set it.
  console.log(`${error.code}: ${error.message}`);
}
client.release();
await pool.end();
