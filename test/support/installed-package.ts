import { cp, mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { builtLibrary } from "./built-library.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Puts the package, compiled from what src holds now, and others of ours into a project's `node_modules`. */
export async function installPackage(folder: string, others: readonly string[] = []): Promise<void> {
  const home = join(folder, "node_modules", "hathi");
  await mkdir(home, { recursive: true });
  await cp(join(root, "package.json"), join(home, "package.json"));
  await symlink(dirname(builtLibrary()), join(home, "dist"), "dir");
  for (const name of others) {
    await mkdir(dirname(join(folder, "node_modules", name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(folder, "node_modules", name), "dir");
  }
}
