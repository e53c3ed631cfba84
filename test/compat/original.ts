import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

/** What these tests use of an original Graphile Worker; typed by hand, since its global types would collide with ours. */
export interface Original {
  runMigrations(options: { connectionString: string; schema?: string }): Promise<void>;
  // biome-ignore lint/suspicious/noExplicitAny: the originals are called the way users call them, from plain JavaScript
  makeWorkerUtils(options: object): Promise<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  quickAddJob(options: object, ...job: unknown[]): Promise<any>;
}

const originals = {
  "0.13": "graphile-worker-013",
  "0.16.0": "graphile-worker-0160",
  "0.16": "graphile-worker-016",
  "0.17.2": "graphile-worker-0172",
  "0.17": "graphile-worker-017",
  "0.18": "graphile-worker",
} as const;

export type OriginalVersion = keyof typeof originals;

/** The file that a version's package loads from. */
export function originalEntry(version: OriginalVersion): string {
  const folder = fileURLToPath(new URL("node_modules/", import.meta.url));
  if (!existsSync(folder)) throw new Error("The originals are not installed: run 'npm ci' in test/compat.");
  const name = originals[version];
  // 0.18 has an `import` condition only, which `require.resolve` cannot follow.
  if (version === "0.18") return `${folder}${name}/dist/index.js`;
  return createRequire(import.meta.url).resolve(name);
}

export async function loadOriginal(version: OriginalVersion = "0.18"): Promise<Original> {
  const module = await import(/* @vite-ignore */ pathToFileURL(originalEntry(version)).href);
  return module.runMigrations ? module : module.default;
}
