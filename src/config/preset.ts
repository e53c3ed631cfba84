import { join } from "node:path";
import { defaults, localQueueTtl } from "./defaults.ts";
import "./preset-options.ts";

/** The preset below all others: defaults, what the environment says, and the given plugins. */
export function makeWorkerPreset(
  plugins: readonly GraphileConfig.Plugin[],
  env: NodeJS.ProcessEnv = process.env,
  cwd = process.cwd(),
): GraphileConfig.Preset {
  return {
    plugins: [...plugins],
    worker: {
      ...defaults,
      fileExtensions: [...defaults.fileExtensions],
      localQueue: { ...defaults.localQueue, ttl: localQueueTtl },
      taskDirectory: join(cwd, "tasks"),
      crontabFile: join(cwd, "crontab"),
      ...(env.GRAPHILE_WORKER_SCHEMA && { schema: env.GRAPHILE_WORKER_SCHEMA }),
      ...(env.DATABASE_URL && { connectionString: env.DATABASE_URL }),
    },
  };
}
