import { redisStore } from "../redis.mjs";
import { withProcesses } from "../worker-process.mjs";

const noSuchRows = "BullMQ has no jobs of this kind in one queue";

const bullmq = {
  family: "bullmq",
  package: "bullmq",
  worker: "bullmq.mjs",
  // Completing a job fetches the next one in the same call.
  claims: /move_to_active|_fetch\(/i,
  lacks: {
    s5: noSuchRows,
    s6: "BullMQ has serial groups in its paid edition only",
    s7: "filled through its API: the dead rows would take minutes",
    s12: "BullMQ claims ahead of nothing",
  },

  /** Through its own API: its rows are not ours to invent. */
  async fill(place, { count, tasks, priorities }) {
    await withProcesses([this.worker], ([producer]) =>
      producer.call("produce", { place: place.address, mode: "batches", count, batchSize: 1000, tasks, priorities }),
    );
  },
};

export const bullmqPostgres = {
  ...bullmq,
  name: "bullmq-postgres",
  title: "BullMQ on PostgreSQL",
  schema: "bullmq",
  // Finished jobs are removed, as ours are.
  settings: () => ({ concurrency: 100, removeOnComplete: true }),
  async countLeft(place) {
    const { rows } = await place.query(
      "select count(*)::int as count from bullmq.job where state in ('waiting', 'active')",
    );
    return rows[0].count;
  },
};

export const bullmqRedis = {
  ...bullmq,
  name: "bullmq-redis",
  title: "BullMQ on Redis (not durable)",
  store: redisStore,
  settings: () => ({ concurrency: 100, removeOnComplete: { count: 0 } }),
  whyNot: (options) => redisStore.start(options),
  countLeft: () => redisStore.countLeft("bull:bench"),
};

/** Keeps finished jobs, as it does unless it is told otherwise; only where a scenario asks for it. */
const keeping = (system) => ({
  ...system,
  name: `${system.name}-keeping`,
  title: `${system.title}, finished jobs kept`,
  isExtra: true,
  settings: () => ({ concurrency: 100 }),
});
export const bullmqPostgresKeeping = keeping(bullmqPostgres);
export const bullmqRedisKeeping = keeping(bullmqRedis);
