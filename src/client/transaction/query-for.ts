import { ConfigError } from "../../errors.ts";
import { drizzleQuery } from "./drizzle.ts";
import { knexQuery } from "./knex.ts";
import { kyselyQuery } from "./kysely.ts";
import { mikroOrmQuery } from "./mikro-orm.ts";
import { pgQuery } from "./pg-client.ts";
import { postgresJsQuery } from "./postgres-js.ts";
import { prismaQuery } from "./prisma.ts";
import type { Query } from "./query.ts";
import { rowsOf, type Stranger } from "./recognise.ts";
import { typeOrmQuery } from "./typeorm.ts";

/** Each knows its own library by marks that no other has, so their order does not matter. */
const adapters = [
  pgQuery,
  drizzleQuery,
  kyselyQuery,
  knexQuery,
  typeOrmQuery,
  mikroOrmQuery,
  prismaQuery,
  postgresJsQuery,
];

/** Finds out whose transaction this is and how to send a query on it; refuses what is no transaction. */
export function queryFor(tx: unknown): Query {
  if ((typeof tx === "object" && tx !== null) || typeof tx === "function") {
    const stranger = tx as Stranger;
    for (const adapter of adapters) {
      const query = adapter(stranger);
      if (query) return query;
    }
  }
  if (typeof tx === "function") return async (text, values) => rowsOf(await tx(text, values));
  throw new ConfigError(
    `'withTransaction' does not know what to do with ${describe(tx)}. It takes a client of pg, a transaction of Drizzle, Kysely, ` +
      "Knex, TypeORM, MikroORM, Prisma or postgres.js, or a function (text, values) => rows that queries on yours.",
  );
}

function describe(thing: unknown): string {
  if (typeof thing !== "object" || thing === null) return typeof thing === "string" ? "a string" : String(thing);
  return `an object of type '${thing.constructor?.name ?? "null prototype"}'`;
}
