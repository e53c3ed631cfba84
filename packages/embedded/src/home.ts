import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { access, constants, mkdir, readFile, realpath, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { EmbeddedError, hasCode } from "./embedded-error.ts";

/** The user's data folder and what we keep in it. */
export interface Home {
  readonly dataDir: string;
  /** PostgreSQL's own folder, or a link to it where the account cannot come here. */
  readonly pgdata: string;
  readonly passwordFile: string;
  readonly lockFile: string;
  readonly holdersDir: string;
}

export async function openHome(dataDir: string): Promise<Home> {
  const path = resolve(dataDir);
  try {
    await mkdir(path, { recursive: true, mode: 0o755 });
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw dataDirDenied(path, cause);
  }
  const home = await realpath(path);
  return {
    dataDir: home,
    pgdata: join(home, "pgdata"),
    passwordFile: join(home, "password"),
    lockFile: join(home, "lock"),
    holdersDir: join(home, "holders"),
  };
}

/** Where the cluster really is; `undefined` before the first start, or if the folder behind the link is gone. */
export async function locateCluster(home: Home): Promise<string | undefined> {
  try {
    await access(join(home.pgdata, "PG_VERSION"));
    return await realpath(home.pgdata);
  } catch (cause) {
    if (!hasCode(cause, "ENOENT")) throw dataDirDenied(home.dataDir, cause);
  }
  if (existsSync(home.pgdata)) {
    throw new EmbeddedError("INIT_FAILED", `'${home.pgdata}' is not a PostgreSQL cluster: move it out of the way.`);
  }
  return undefined;
}

export async function majorOf(clusterDir: string): Promise<number> {
  return Number.parseInt(await readFile(join(clusterDir, "PG_VERSION"), "utf8"), 10);
}

export async function createPassword(home: Home): Promise<string> {
  const password = randomBytes(24).toString("base64url");
  const aside = `${home.passwordFile}.new`;
  await writeFile(aside, password, { mode: 0o600 });
  await rename(aside, home.passwordFile);
  return password;
}

export async function readPassword(home: Home): Promise<string> {
  try {
    return (await readFile(home.passwordFile, "utf8")).trim();
  } catch (cause) {
    if (hasCode(cause, "EACCES", "EPERM")) throw dataDirDenied(home.dataDir, cause);
    throw new EmbeddedError(
      "WRONG_PASSWORD",
      `'${home.dataDir}' holds a database but '${home.passwordFile}' is missing: put the file back, or remove the folder to start afresh.`,
      { cause },
    );
  }
}

function dataDirDenied(dataDir: string, cause: unknown): EmbeddedError {
  return new EmbeddedError(
    "DATA_DIR_DENIED",
    `The data folder '${dataDir}' cannot be used by user id ${process.geteuid?.() ?? "?"}: choose another, or run as its owner.`,
    { cause },
  );
}
