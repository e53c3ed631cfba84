import postgres from "postgres";
import type { Library } from "./library.ts";

export const postgresJs: Library = {
  name: "postgres.js",
  open: async (url) => {
    const sql = postgres(url, { max: 1 });
    return { transaction: (work) => sql.begin((tx) => work(tx)), outside: sql, close: () => sql.end() };
  },
};
