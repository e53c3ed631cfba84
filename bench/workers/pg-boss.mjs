import { PgBoss } from "pg-boss";
import { serve } from "./serve.mjs";

serve({
  async install(place, tasks) {
    const boss = await open(place);
    for (const task of tasks) await boss.createQueue(task, { notify: true });
    await boss.stop();
  },

  async startWorker({ place, settings, tasks, handler, behaviour }) {
    const boss = await open(place);
    const failing = behaviour === "fail";
    for (const task of tasks) {
      // Without per-job results one failure would fail its whole batch.
      await boss.work(task, { ...settings, perJobResults: failing }, failing ? failAll(handler) : runAll(handler));
    }
    return { stop: () => boss.stop() };
  },

  async openProducer({ place }) {
    const boss = await open(place);
    return {
      add: (task, payload) => boss.send(task, payload),
      addMany: (task, payloads) =>
        boss.insert(
          task,
          payloads.map((data) => ({ data })),
        ),
      close: () => boss.stop(),
    };
  },
});

async function open({ connectionString }) {
  const boss = new PgBoss({ connectionString, useListenNotify: true });
  boss.on("error", (error) => console.error(`pg-boss: ${error.message}`));
  await boss.start();
  return boss;
}

const runAll = (handler) => async (jobs) => {
  await Promise.all(jobs.map((job) => handler(job.data)));
};

const failAll = (handler) => async (jobs) =>
  jobs.map((job) => {
    try {
      handler(job.data);
      return { id: job.id, status: "completed" };
    } catch (error) {
      return { id: job.id, status: "failed", output: { message: error.message } };
    }
  });
