import pg, { type PoolClient } from "pg";

/** A connection of its own, outside of any pool, in the shape of a pool's client. */
export async function connectDirectly(connectionString: string): Promise<PoolClient> {
  const client = new pg.Client({ connectionString, keepAlive: true });
  client.on("error", () => undefined); // whoever uses it hears of it too
  await client.connect();
  const release = (): void => {
    client.end().catch(() => undefined);
  };
  return Object.assign(client, { release }) as unknown as PoolClient;
}
