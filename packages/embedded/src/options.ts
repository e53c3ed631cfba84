import { resolve } from "node:path";
import { isProfile, type Profile, type Settings } from "./cluster-config.ts";
import { EmbeddedError } from "./embedded-error.ts";

export interface EmbeddedOptions {
  /** Folder for everything this server keeps; made if missing. Processes that name the same folder share the server. */
  readonly dataDir: string;
  /** Loopback port. Default: the one used last time if it is free, otherwise any free one. Ignored when attaching. */
  readonly port?: number | undefined;
  /** Major version. Default: the version of the existing cluster, or the bundled one. */
  readonly version?: number | string | undefined;
  /** "durable" (default) survives a crash of the machine; "test" is faster and does not. Ignored when attaching. */
  readonly profile?: Profile | undefined;
  /** More settings for postgresql.conf, e.g. `{ max_connections: 300 }`. Ignored when attaching. */
  readonly settings?: Settings | undefined;
  /**
   * Where to look for binaries first: a folder with `bin/pg_ctl`, or one whose `node_modules` holds `pg<major>` aliases.
   * Default: the environment variable HATHI_EMBEDDED_NATIVE.
   */
  readonly nativeDir?: string | undefined;
}

/** What one start was asked for, checked. */
export interface StartRequest {
  readonly dataDir: string;
  readonly port: number | undefined;
  readonly major: number | undefined;
  readonly profile: Profile;
  readonly settings: Settings;
  readonly nativeDir: string | undefined;
}

export function checkOptions(options: EmbeddedOptions): StartRequest {
  const { dataDir, port, version, profile = "durable", settings = {} } = options;
  if (typeof dataDir !== "string" || dataDir === "") throw badOption("dataDir", "the path of a folder", dataDir);
  // pg_ctl hands the path to a shell between double quotes.
  if (process.platform !== "win32" && /["$`\\\n]/.test(resolve(dataDir))) {
    throw badOption("dataDir", 'a path without any of " $ ` \\', dataDir);
  }
  if (port !== undefined && !isWithin(port, 1, 65_535)) throw badOption("port", "a number from 1 to 65535", port);
  const major = version === undefined ? undefined : Number(version);
  if (major !== undefined && !isWithin(major, 10, 99))
    throw badOption("version", "a major version such as 17", version);
  if (!isProfile(profile)) throw badOption("profile", "'durable' or 'test'", profile);
  for (const name of Object.keys(settings)) {
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw badOption("settings", "names of PostgreSQL settings", name);
  }
  const nativeDir = options.nativeDir ?? (process.env.HATHI_EMBEDDED_NATIVE || undefined);
  return { dataDir, port, major, profile, settings, nativeDir };
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}

function badOption(name: string, wanted: string, got: unknown): EmbeddedError {
  return new EmbeddedError("BAD_OPTION", `'${name}' must be ${wanted}, got ${JSON.stringify(got)}.`);
}
