import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readConnectionString } from "../connection-string.ts";
import { describeDatabase } from "./describe-database.ts";
import { originOf } from "./env-files.ts";
import { UsageError } from "./usage-error.ts";

export interface Connection {
  /** Undefined: the PG* variables say it all. */
  readonly connectionString: string | undefined;
  /** Names the database for people to read, and says who named it. */
  readonly description: string;
  /** True if it is the embedded server of this folder. */
  readonly isEmbedded: boolean;
  /** Lets go of the embedded server; the last one to do so ends it. */
  release(): Promise<void>;
}

/** What the user has named, if anything. */
export interface NamedDatabases {
  readonly flag: string | undefined;
  readonly config: string | undefined;
}

/** The database to use: what was named, what the environment names, or an embedded server with its data in this folder. */
export async function findConnection(
  { flag, config }: NamedDatabases,
  folder: string,
  env = process.env,
): Promise<Connection> {
  if (flag) return connectionTo(flag, "--connection");
  if (config) return connectionTo(config, "the config file");
  if (env.DATABASE_URL) return connectionTo(env.DATABASE_URL, originOf("DATABASE_URL"));
  if (env.PGDATABASE) return connectionTo(undefined, originOf("PGDATABASE"));
  if (env.PGHOST || env.PGUSER) {
    throw new UsageError("PGDATABASE is not set: name the database in it, in DATABASE_URL, or with --connection.");
  }
  if (env.NODE_ENV === "production") {
    throw new UsageError(
      `No database is configured, and an embedded one is not for production (${originOf("NODE_ENV")} is 'production'): name yours with DATABASE_URL, in a .env file, or with --connection.`,
    );
  }
  return startEmbedded(folder);
}

function connectionTo(connectionString: string | undefined, source: string): Connection {
  if (connectionString !== undefined) readConnectionString(connectionString);
  const description = `${describeDatabase(connectionString)} (${source})`;
  return { connectionString, description, isEmbedded: false, release: async () => undefined };
}

async function startEmbedded(folder: string): Promise<Connection> {
  const { startEmbedded: start } = await importEmbedded(folder);
  const server = await start({ dataDir: join(folder, ".hathi") });
  return {
    connectionString: server.connectionString,
    description: "the embedded database in ./.hathi",
    isEmbedded: true,
    release: async () => void (await server.stop()),
  };
}

type Embedded = typeof import("@hathi/embedded");

/** The package may be installed beside this one, or only in the project. */
async function importEmbedded(folder: string): Promise<Embedded> {
  const name = "@hathi/embedded";
  for (const parent of [import.meta.url, pathToFileURL(join(folder, "package.json")).href]) {
    let file: string;
    try {
      file = createRequire(parent).resolve(name);
    } catch {
      continue;
    }
    return (await import(pathToFileURL(file).href)) as Embedded;
  }
  throw new UsageError(
    `No database is configured. Name one with DATABASE_URL (in the environment or a .env file) or --connection, or run 'npm install --save-dev ${name}' to have one started for you.`,
  );
}
