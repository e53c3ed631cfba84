import type pg from "pg";
import type { ClientConfig, PoolClient } from "pg";
import { readConnectionString } from "../connection-string.ts";
import { PatientClient } from "./patient-client.ts";

/** A connection of its own, outside of any pool, in the shape of a pool's client. */
export async function connectDirectly(config: string | ClientConfig): Promise<PoolClient> {
  const client = new PatientClient({
    ...(typeof config === "string" ? readConnectionString(config) : config),
    keepAlive: true,
  });
  client.on("error", () => undefined); // whoever uses it hears of it too
  await client.connect();
  const release = (): void => {
    client.end().catch(() => undefined);
  };
  return Object.assign(client, { release }) as unknown as PoolClient;
}

const connectionKeys = [
  "connectionString",
  "host",
  "port",
  "user",
  "database",
  "options",
  "application_name",
  "stream",
  "client_encoding",
] as const satisfies readonly (keyof ClientConfig)[];

/** How to connect to where a pool connects to. */
export function configOf(pool: pg.Pool): ClientConfig {
  // The pool hides secrets from enumeration, so they are fetched by their names.
  const options: ClientConfig = pool.options;
  const { password, ssl } = options;
  return Object.fromEntries(
    [
      ...connectionKeys.map((key) => [key, options[key]] as const),
      ["password", password] as const,
      ["ssl", typeof ssl === "object" ? { ...ssl, ...(ssl.key && { key: ssl.key }) } : ssl] as const,
    ].filter(([, value]) => value !== undefined && value !== null),
  );
}

/** The process that serves this client, if the client speaks to it without a pooler in between. */
export async function directBackend(client: PoolClient): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  // A pooler makes up the process id that it tells its clients, since it has no one process for them.
  const told = (client as { processID?: unknown }).processID;
  return rows[0]?.pid === told ? rows[0]?.pid : undefined;
}
