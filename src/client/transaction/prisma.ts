import type { Query } from "./query.ts";
import { hasMethods, notATransaction, rowsOf, type Stranger } from "./recognise.ts";

interface PrismaTransaction {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>;
}

/** Prisma: the client that an interactive transaction hands to its callback. */
export function prismaQuery(tx: Stranger): Query | undefined {
  if (!hasMethods(tx, "$queryRawUnsafe")) return undefined;
  if (hasMethods(tx, "$connect")) {
    throw notATransaction(
      "a PrismaClient",
      "hand in the client of an interactive transaction, as in prisma.$transaction(async (tx) => …).",
    );
  }
  const transaction = tx as unknown as PrismaTransaction;
  return async (text, values) => rowsOf(await transaction.$queryRawUnsafe(text, ...values));
}
