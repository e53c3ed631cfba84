import Knex from "knex";
import type { Library } from "./library.ts";

export const knex: Library = {
  name: "Knex",
  open: async (url) => {
    const db = Knex({ client: "pg", connection: url, pool: { min: 0, max: 1 } });
    return { transaction: (work) => db.transaction((tx) => work(tx)), outside: db, close: () => db.destroy() };
  },
};
