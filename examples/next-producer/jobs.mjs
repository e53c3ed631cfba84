import { makeWorkerUtils } from "hathi";
import pg from "pg";

/** The pool and the utils of this process. A reloaded module finds those that are there already. */
export function openJobs() {
  globalThis.exampleJobs ??= open();
  return globalThis.exampleJobs;
}

async function open() {
  const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
  // An idle connection that breaks must not end the process; the pool opens another.
  pool.on("error", (error) => console.error(error.message));
  pool.on("connect", (client) => client.on("error", (error) => console.error(error.message)));
  const utils = await makeWorkerUtils({ pgPool: pool });
  await pool.query("create table if not exists example_sign_ups (email text primary key)");
  return { pool, utils };
}
