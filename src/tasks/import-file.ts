import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { pathToFileURL } from "node:url";
import type { Jiti } from "jiti";
import { codeOf } from "./error-code.ts";
import { describeLoadFailure } from "./task-file-error.ts";

const require = createRequire(import.meta.url);
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

/**
 * Imports a JavaScript or TypeScript file; one that changed since it was last imported is loaded afresh, while what already
 * runs keeps the code it has. Failures name the file, the line and the fault.
 */
export async function importFile(file: string): Promise<unknown> {
  try {
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

async function importOnce(file: string, query: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(file).href + query);
  } catch (error) {
    if (!typescript.has(extname(file)) || !beyondNode.has(codeOf(error) ?? "")) throw error;
    return await (await loadJiti()).import(file);
  }
}

let jiti: Jiti | undefined;

/** Only those who have TypeScript that Node cannot run pay for the compiler. */
async function loadJiti(): Promise<Jiti> {
  if (!jiti) {
    const { createJiti } = await import("jiti");
    jiti = createJiti(import.meta.url, { interopDefault: false, fsCache: false });
  }
  return jiti;
}
