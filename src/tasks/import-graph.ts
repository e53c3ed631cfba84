import { readFile, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Project files by path: when each was changed, and which others it imports. */
export type ImportGraph = ReadonlyMap<string, { readonly stamp: string; readonly imports: readonly string[] }>;

const specifiers = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'](\.{1,2}\/[^"']+)["']/g;
/** What people write for a file, and what the file may be called. */
const endings = ["", ".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", "/index.ts", "/index.js", "/index.mjs"];

/** The files and all that they import by a relative path, read from their text. */
export async function readImportGraph(files: readonly string[]): Promise<ImportGraph> {
  const graph = new Map<string, { stamp: string; imports: string[] }>();
  const waiting = [...files];
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    if (graph.has(file)) continue;
    const stamp = await stampOf(file);
    if (stamp === undefined) continue;
    const text = /\.[cm]?[jt]sx?$/.test(file) ? await readFile(file, "utf8").catch(() => "") : "";
    const found = await Promise.all([...text.matchAll(specifiers)].map(([, path]) => findFile(dirname(file), path!)));
    const imports = found.filter((path) => path !== undefined);
    graph.set(file, { stamp, imports });
    waiting.push(...imports);
  }
  return graph;
}

/** The files that were changed, and all that import one of them, directly or not. */
export function filesAffected(before: ImportGraph, after: ImportGraph): Set<string> {
  const affected = new Set([...after.keys()].filter((file) => before.get(file)?.stamp !== after.get(file)?.stamp));
  for (let size = -1; size !== affected.size; ) {
    size = affected.size;
    for (const [file, { imports }] of after) if (imports.some((path) => affected.has(path))) affected.add(file);
  }
  return affected;
}

async function findFile(folder: string, specifier: string): Promise<string | undefined> {
  const path = resolve(folder, specifier);
  const bare = path.replace(/\.([cm]?)jsx?$/, "");
  for (const candidate of [...endings.map((ending) => path + ending), ...endings.map((ending) => bare + ending)]) {
    if ((await stampOf(candidate)) !== undefined) return candidate;
  }
  return undefined;
}

/** A file that was saved again, or made executable, is a new version. */
async function stampOf(file: string): Promise<string | undefined> {
  const stats = await stat(file).catch(() => undefined);
  return stats?.isFile() ? `${stats.mtimeMs}:${stats.size}:${stats.mode}` : undefined;
}
