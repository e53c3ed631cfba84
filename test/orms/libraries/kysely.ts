import { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect } from "kysely";
import pg from "pg";
import type { Library } from "./library.ts";

/** With the plugins that would change rows. */
const plugins = [new CamelCasePlugin(), new ParseJSONResultsPlugin()];

function openKysely(url: string): Kysely<unknown> {
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  return new Kysely({ dialect: new PostgresDialect({ pool }), plugins });
}

export const kysely: Library = {
  name: "Kysely",
  open: async (url) => {
    const db = openKysely(url);
    return {
      transaction: (work) => db.transaction().execute((tx) => work(tx)),
      outside: db,
      close: () => db.destroy(),
    };
  },
};

export const kyselyControlled: Library = {
  name: "Kysely, controlled",
  open: async (url) => {
    const db = openKysely(url);
    return {
      transaction: async (work) => {
        const tx = await db.startTransaction().execute();
        try {
          await work(tx);
          await tx.commit().execute();
        } catch (error) {
          await tx.rollback().execute();
          throw error;
        }
      },
      outside: db,
      close: () => db.destroy(),
    };
  },
};
