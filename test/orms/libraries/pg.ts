import pg from "pg";
import type { CallerTransaction } from "../../../src/caller-transaction.ts";
import type { Library } from "./library.ts";

export const pgPoolClient: Library = {
  name: "pg PoolClient",
  open: async (url) => {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    return {
      transaction: async (work) => {
        const client = await pool.connect();
        try {
          await inTransaction(client, work);
        } finally {
          client.release();
        }
      },
      outside: pool,
      close: () => pool.end(),
    };
  },
};

export const pgClient: Library = {
  name: "pg Client",
  open: async (url) => {
    const client = new pg.Client({ connectionString: url });
    client.on("error", () => undefined);
    await client.connect();
    return {
      transaction: (work) => inTransaction(client, work),
      outside: new pg.Pool({ connectionString: url }),
      close: () => client.end(),
    };
  },
};

async function inTransaction(
  client: pg.Client | pg.PoolClient,
  work: (tx: CallerTransaction) => Promise<void>,
): Promise<void> {
  await client.query("begin");
  try {
    await work(client);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
