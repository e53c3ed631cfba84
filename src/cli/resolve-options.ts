import { resolvePreset } from "graphile-config";
import { loadConfigFile } from "../config/file.ts";
import type { RunnerOptions } from "../index.ts";
import { importFile } from "../tasks/import-file.ts";
import { type Connection, findConnection } from "./connection.ts";

export interface DatabaseArgs {
  readonly connection?: string | undefined;
  readonly schema?: string | undefined;
  readonly config?: string | undefined;
}

export interface ResolvedOptions {
  readonly options: RunnerOptions & { preset: GraphileConfig.Preset };
  readonly connection: Connection;
}

/** Flags over the config file over fallbacks. A flag that was not given says nothing, so it overrides nothing. */
export async function resolveOptions(
  args: DatabaseArgs,
  given: GraphileConfig.WorkerOptions = {},
  fallbacks: GraphileConfig.WorkerOptions = {},
  folder = process.cwd(),
): Promise<ResolvedOptions> {
  const config = await loadConfigFile(folder, args.config, importFile);
  const configured = config ? resolvePreset(config.preset).worker : undefined;
  const connection = await findConnection({ flag: args.connection, config: configured?.connectionString }, folder);
  const worker: GraphileConfig.WorkerOptions = { ...given };
  if (connection.connectionString !== undefined) worker.connectionString = connection.connectionString;
  if (args.schema !== undefined) worker.schema = args.schema;
  return { options: { preset: { extends: [{ worker: fallbacks }, config?.preset ?? {}], worker } }, connection };
}

/** What the config file alone says, for questions that need no database. */
export async function resolvePresetOnly(
  config: string | undefined,
  folder = process.cwd(),
): Promise<GraphileConfig.Preset> {
  return (await loadConfigFile(folder, config, importFile))?.preset ?? {};
}
