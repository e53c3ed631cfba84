import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "./pages.ts";

const run = promisify(execFile);

/** Both packages as they would be published, by name. `npm test` builds before it tests. */
export async function packBoth(into: string): Promise<Record<string, string>> {
  const pack = async (folder: string): Promise<string> => {
    const { stdout } = await run("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", into], {
      cwd: folder,
    });
    const [packed] = JSON.parse(stdout) as { filename: string }[];
    return join(into, packed!.filename);
  };
  const [hathi, embedded] = await Promise.all([pack(root), pack(join(root, "packages/embedded"))]);
  return { hathi: hathi!, "@hathi/embedded": embedded! };
}

/** A folder that any account can reach. */
export async function makeFolder(name: string): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), `hathi-${name}-`));
  await chmod(folder, 0o755);
  return { folder, remove: () => rm(folder, { recursive: true, force: true }) };
}

/** Puts the package as it was built, with its types, and others of ours into a folder's `node_modules`. */
export async function linkPackage(folder: string, others: readonly string[]): Promise<void> {
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, "hathi"), { recursive: true });
  await copyFile(join(root, "package.json"), join(modules, "hathi/package.json"));
  await symlink(join(root, "dist"), join(modules, "hathi/dist"), "dir");
  for (const name of others) await symlink(join(root, "node_modules", name), join(modules, name), "dir");
}
