import { createHash } from "node:crypto";
import nodeModule from "node:module";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export interface TestDatabaseOptions {
  /** Where the server keeps its files. If left out, a folder for this project below the system's temporary folder. */
  readonly dataDir?: string;
}

/** A PostgreSQL server for tests. */
export interface TestDatabase {
  readonly connectionString: string;
  /** Releases the server; it stops when the last process has released it. May be called twice. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts a PostgreSQL server for the tests of this project, or uses the one that another process of the project has started. Call it once
 * for a whole run, or in every test file. Needs the package `@hathi/embedded`.
 */
export async function startTestDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const { startEmbedded } = await importEmbedded();
  const server = await startEmbedded({
    dataDir: options.dataDir ?? defaultFolder(),
    profile: "test",
    settings: { max_connections: 300 },
  });
  const stop = async (): Promise<void> => void (await server.stop());
  return { connectionString: server.connectionString, stop, [Symbol.asyncDispose]: stop };
}

function defaultFolder(): string {
  const project = createHash("sha1").update(process.cwd()).digest("hex").slice(0, 10);
  return join(tmpdir(), `hathi-testing-${userInfo().uid}-${project}`);
}

/** The package may be installed beside this one, or only in the project. */
async function importEmbedded(): Promise<typeof import("@hathi/embedded")> {
  const name = "@hathi/embedded";
  for (const parent of [import.meta.url, pathToFileURL(join(process.cwd(), "package.json")).href]) {
    let file: string;
    try {
      file = nodeModule.createRequire(parent).resolve(name);
    } catch {
      continue;
    }
    return (await import(pathToFileURL(file).href)) as typeof import("@hathi/embedded");
  }
  throw new Error(`To start a database for tests, run 'npm install --save-dev ${name}'.`);
}
