import { createPostgresBackend, createRedisBackend, Queue, Worker } from "bullmq";
import { serve } from "./serve.mjs";

const queueName = "bench";

serve({
  async install(place) {
    const queue = openQueue(place, { migrate: true });
    await queue.waitUntilReady();
    await queue.close();
  },

  async startWorker({ place, settings, handler }) {
    const worker = new Worker(
      queueName,
      async (job) => handler(job.data),
      { connection: connectionOf(place), ...settings },
      backendOf(place),
    );
    worker.on("error", (error) => console.error(`bullmq: ${error.message}`));
    await worker.waitUntilReady();
    return { stop: () => worker.close() };
  },

  async openProducer({ place }) {
    const queue = openQueue(place);
    await queue.waitUntilReady();
    return {
      add: (task, data) => queue.add(task, data),
      addMany: (task, payloads, { tasks = 1, priorities = 1 }) =>
        queue.addBulk(
          payloads.map((data) => ({
            name: tasks > 1 ? `${task}_${data.i % tasks}` : task,
            data,
            // A job that fails waits for its second attempt, so it fails once.
            opts: {
              attempts: 2,
              backoff: 600_000,
              ...(priorities > 1 && { priority: 1 + (Math.floor(data.i / tasks) % priorities) }),
            },
          })),
        ),
      close: () => queue.close(),
    };
  },
});

function openQueue(place, extra) {
  return new Queue(queueName, { connection: { ...connectionOf(place), ...extra } }, backendOf(place));
}

function backendOf(place) {
  return place.redisPort ? createRedisBackend : createPostgresBackend;
}

function connectionOf(place) {
  return place.redisPort
    ? { host: "127.0.0.1", port: place.redisPort, maxRetriesPerRequest: null }
    : { connectionString: place.connectionString };
}
