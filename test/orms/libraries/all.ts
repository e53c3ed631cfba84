import { drizzleNodePostgres, drizzlePostgresJs } from "./drizzle.ts";
import { knex } from "./knex.ts";
import { kysely, kyselyControlled } from "./kysely.ts";
import type { Library } from "./library.ts";
import { mikroOrm, mikroOrmBegin } from "./mikro-orm.ts";
import { pgClient, pgPoolClient } from "./pg.ts";
import { postgresJs } from "./postgres-js.ts";
import { prisma } from "./prisma.ts";
import { typeOrmManager, typeOrmRunner } from "./typeorm.ts";

export const libraries: readonly Library[] = [
  pgPoolClient,
  pgClient,
  drizzleNodePostgres,
  drizzlePostgresJs,
  kysely,
  kyselyControlled,
  knex,
  typeOrmManager,
  typeOrmRunner,
  mikroOrm,
  mikroOrmBegin,
  prisma,
  postgresJs,
];
