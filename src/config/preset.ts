import { resolve } from "node:path";
import { workerDefaults } from "./settings.ts";

/** Plugins find these in a preset only if they were set there, as in the original. */
const hidden = ["localQueue", "getQueueNameBatchDelay", "completeJobBatchDelay", "failJobBatchDelay"];

/** The preset below all others: defaults, what the environment says, and the given plugins. */
export function makeWorkerPreset(
  plugins: readonly GraphileConfig.Plugin[],
  env: NodeJS.ProcessEnv = process.env,
  cwd = process.cwd(),
): GraphileConfig.Preset {
  return {
    plugins: [...plugins],
    worker: {
      ...structuredClone(Object.fromEntries(Object.entries(workerDefaults).filter(([name]) => !hidden.includes(name)))),
      taskDirectory: resolve(cwd, "tasks"),
      crontabFile: resolve(cwd, "crontab"),
      ...(env.GRAPHILE_WORKER_SCHEMA && { schema: env.GRAPHILE_WORKER_SCHEMA }),
      ...(env.DATABASE_URL && { connectionString: env.DATABASE_URL }),
    },
  };
}
