import { stat } from "node:fs/promises";
import nodeModule from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Jiti } from "jiti";
import { codeOf } from "../errors.ts";
import { importAtRunTime } from "../util/import-at-run-time.ts";
import { ownUrl } from "../util/own-url.ts";
import { describeLoadFailure } from "./task-file-error.ts";

const require = nodeModule.createRequire(ownUrl);
const typescript = new Set([".ts", ".mts", ".cts", ".tsx"]);

/** What Node says of TypeScript that it cannot run by itself: all of it before 22.18, enums and the like after. */
const beyondNode = new Set([
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_INVALID_TYPESCRIPT_SYNTAX",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
  "ERR_MODULE_NOT_FOUND", // `import "./x.js"` that means x.ts
]);

/** What each file was when it was last loaded, and the query its URL had then. */
const loadedByFile = new Map<string, { readonly stamp: string; readonly query: string }>();

/** Files that once had a stale import. Node keeps what a module imports for as long as it runs, so jiti loads them from then on. */
const reloaded = new Set<string>();

/** From now on, these files are loaded afresh, also when they are imported by one another. */
export function forgetFiles(files: Iterable<string>): void {
  for (const file of files) {
    reloaded.add(file);
    delete require.cache[file];
  }
}

/**
 * Imports a JavaScript or TypeScript file; one that changed since it was last imported is loaded afresh, while what already
 * runs keeps the code it has. Failures name the file, the line and the fault.
 */
export async function importFile(file: string): Promise<unknown> {
  try {
    if (reloaded.has(file)) return await importAfresh(file);
    const stats = await stat(file);
    const stamp = `${stats.mtimeMs}-${stats.size}`;
    const known = loadedByFile.get(file);
    const isChanged = known !== undefined && known.stamp !== stamp;
    const query = isChanged ? `?v=${stamp}` : (known?.query ?? "");
    loadedByFile.set(file, { stamp, query });
    // Without this, Node would answer a new URL of a CommonJS file with the old module.
    if (isChanged) delete require.cache[file];
    return await importOnce(file, query);
  } catch (error) {
    throw await describeLoadFailure(file, error);
  }
}

/** As CommonJS, whose cache can be cleared. Top-level await needs ES modules, so such a file keeps the imports it had. */
async function importAfresh(file: string): Promise<unknown> {
  const jiti = await loadJiti();
  try {
    return jiti(file);
  } catch (error) {
    if (error instanceof SyntaxError && error.message.startsWith("await is only valid")) return jiti.import(file);
    throw error;
  }
}

async function importOnce(file: string, query: string): Promise<unknown> {
  try {
    return await importAtRunTime(pathToFileURL(file).href + query);
  } catch (error) {
    if (!typescript.has(extname(file)) || !beyondNode.has(codeOf(error) ?? "")) throw error;
    return await (await loadJiti()).import(file);
  }
}

let jiti: Jiti | undefined;

/** Only those who have TypeScript that Node cannot run pay for the compiler. */
async function loadJiti(): Promise<Jiti> {
  if (!jiti) {
    const { createJiti } = (await importAtRunTime("jiti")) as typeof import("jiti");
    jiti = createJiti(ownUrl, { interopDefault: false, fsCache: false });
  }
  return jiti;
}
