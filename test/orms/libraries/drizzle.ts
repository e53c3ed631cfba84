import { drizzle as drizzleOnPg } from "drizzle-orm/node-postgres";
import { drizzle as drizzleOnPostgresJs } from "drizzle-orm/postgres-js";
import pg from "pg";
import postgres from "postgres";
import type { Library } from "./library.ts";

export const drizzleNodePostgres: Library = {
  name: "Drizzle on node-postgres",
  open: async (url) => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const db = drizzleOnPg({ client: pool });
    return { transaction: (work) => db.transaction(work), outside: db, close: () => pool.end() };
  },
};

export const drizzlePostgresJs: Library = {
  name: "Drizzle on postgres.js",
  open: async (url) => {
    const sql = postgres(url, { max: 1 });
    const db = drizzleOnPostgresJs({ client: sql });
    return { transaction: (work) => db.transaction(work), outside: db, close: () => sql.end() };
  },
};
