// Connects, says so, and migrates when it is told to.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { createJiti } from "jiti";
import pg from "pg";

const [url, schema] = process.argv.slice(2);
const { migrate } = await createJiti(import.meta.url).import("../../src/db/migrate.ts");
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
