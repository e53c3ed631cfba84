import { access } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ConfigError } from "../errors.ts";
import { unwrapDefault } from "../util/unwrap-default.ts";

/** Ours first: a project that has both is migrating. */
const names = ["hathi.config", "graphile.config"];
const extensions = [".ts", ".mts", ".js", ".mjs", ".cjs"];

export interface ConfigFile {
  readonly file: string;
  readonly preset: GraphileConfig.Preset;
}

/** The preset that a project's configuration file exports, if it has one; a file that was named must be there. */
export async function loadConfigFile(
  folder: string,
  given: string | undefined,
  importFile: (file: string) => Promise<unknown>,
): Promise<ConfigFile | undefined> {
  const file = given === undefined ? await findConfigFile(folder) : resolve(folder, given);
  if (file === undefined) return undefined;
  if (given !== undefined && !(await exists(file))) throw new ConfigError(`The config file '${file}' does not exist.`);
  const preset = unwrapDefault(await importFile(file));
  if (typeof preset !== "object" || preset === null || Array.isArray(preset)) {
    throw new ConfigError(
      `The config file '${file}' must export a preset as its default: export default { worker: { … } }.`,
    );
  }
  return { file, preset };
}

async function findConfigFile(folder: string): Promise<string | undefined> {
  for (const name of names) {
    for (const extension of extensions) {
      const file = join(folder, `${name}${extension}`);
      if (await exists(file)) return file;
    }
  }
  return undefined;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
