import { bullmqPostgres, bullmqPostgresKeeping, bullmqRedis, bullmqRedisKeeping } from "./bullmq.mjs";
import { graphileDefault, graphileTuned } from "./graphile-worker.mjs";
import { oursControlled, oursDefault, oursFull, oursMetered, oursOutcomes, oursSafe } from "./ours.mjs";
import { pgBoss } from "./pg-boss.mjs";
import { rawDrain, rawNotify } from "./raw.mjs";

const all = [
  oursDefault,
  oursSafe,
  oursControlled,
  oursOutcomes,
  oursFull,
  oursMetered,
  graphileDefault,
  graphileTuned,
  pgBoss,
  bullmqPostgres,
  bullmqPostgresKeeping,
  bullmqRedis,
  bullmqRedisKeeping,
  rawDrain,
  rawNotify,
];

/** The systems that were asked for and can run here; for the others, why not. */
export async function chooseSystems(options, places) {
  const systems = [];
  const leftOut = [];
  for (const system of all) {
    const { only } = options;
    if (only && !only.includes(system.name) && !only.includes(system.family) && system.family !== "raw") continue;
    const reason = await system.whyNot?.(options, places);
    if (reason) leftOut.push({ system, reason });
    else systems.push(system);
  }
  return { systems, leftOut };
}
