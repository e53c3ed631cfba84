import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { UsageError } from "./usage-error.ts";

export interface Connection {
  /** Undefined: the PG* variables say it all. */
  readonly connectionString: string | undefined;
  /** True if it is the embedded server of this folder. */
  readonly isEmbedded: boolean;
  /** Lets go of the embedded server; the last one to do so ends it. */
  release(): Promise<void>;
}

/** The database to use: what was named, what the environment names, or an embedded server with its data in this folder. */
export async function findConnection(
  named: string | undefined,
  folder: string,
  env = process.env,
): Promise<Connection> {
  const connectionString = named || env.DATABASE_URL;
  if (connectionString) {
    checkConnectionString(connectionString);
    return { connectionString, isEmbedded: false, release: async () => undefined };
  }
  if (env.PGDATABASE) return { connectionString: undefined, isEmbedded: false, release: async () => undefined };
  if (env.PGHOST || env.PGUSER) {
    throw new UsageError("PGDATABASE is not set: name the database in it, in DATABASE_URL, or with --connection.");
  }
  return startEmbedded(folder);
}

function checkConnectionString(text: string): void {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):/i.exec(text) ?? [];
  if (scheme === undefined || ["postgres", "postgresql", "socket"].includes(scheme.toLowerCase())) return;
  throw new UsageError(
    `The connection string starts with '${scheme}:'; it should look like postgres://user:password@host:5432/database.`,
  );
}

async function startEmbedded(folder: string): Promise<Connection> {
  const { startEmbedded: start } = await importEmbedded(folder);
  const server = await start({ dataDir: join(folder, ".hathi") });
  return {
    connectionString: server.connectionString,
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
    `No database is configured. Name one with DATABASE_URL (or --connection), or run 'npm install --save-dev ${name}' to have one started for you.`,
  );
}
