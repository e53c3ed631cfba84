import { chown, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Account } from "./account.ts";

export const configFileName = "embedded.conf";

export type Settings = Readonly<Record<string, string | number | boolean>>;

/** Durable keeps every promise of PostgreSQL; test trades crash safety for speed. */
export type Profile = "durable" | "test";

const profiles: Readonly<Record<Profile, Settings>> = {
  durable: {},
  test: { fsync: false, full_page_writes: false, synchronous_commit: false },
};

export function isProfile(name: string): name is Profile {
  return Object.hasOwn(profiles, name);
}

/** Writes what this start wants; it is read after postgresql.conf and before what ALTER SYSTEM wrote. */
export async function writeConfig(
  clusterDir: string,
  wanted: { readonly port: number; readonly profile: Profile; readonly settings: Settings },
  account: Account | undefined,
): Promise<void> {
  const settings: Settings = {
    ...profiles[wanted.profile],
    ...wanted.settings,
    port: wanted.port,
    listen_addresses: "127.0.0.1",
    // Paths of more than 107 bytes would keep the server from starting.
    unix_socket_directories: "",
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${quote(value)}\n`);
  const file = join(clusterDir, configFileName);
  const aside = `${file}.new`;
  await writeFile(aside, lines.join(""), { mode: 0o600 });
  if (account !== undefined) await chown(aside, account.uid, account.gid);
  await rename(aside, file);
}

/** The port of the last start. */
export async function readPort(clusterDir: string): Promise<number | undefined> {
  const text = await readFile(join(clusterDir, configFileName), "utf8").catch(() => "");
  const port = /^port = '(\d+)'$/m.exec(text)?.[1];
  return port === undefined ? undefined : Number(port);
}

function quote(value: string | number | boolean): string {
  const text = typeof value === "boolean" ? (value ? "on" : "off") : String(value);
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "''")}'`;
}
