import { EventEmitter } from "node:events";
import { runTaskList, runTaskListOnce, type TaskList, type WorkerEvents, type WorkerUtils } from "graphile-worker";
import { logger, pool } from "./surroundings.js";

export async function runLists(utils: WorkerUtils): Promise<object> {
  const ran: string[] = [];
  const tasks: TaskList = {
    listed: (payload, { job }) => {
      ran.push(`${job.task_identifier} ${JSON.stringify(payload)}`);
    },
  };
  await utils.addJob("listed", { once: true });
  const client = await pool.connect();
  try {
    await runTaskListOnce({ logger, noHandleSignals: true }, tasks, client);
  } finally {
    client.release();
  }
  const events: WorkerEvents = new EventEmitter();
  const happened = (event: "job:complete" | "pool:listen:success"): Promise<void> =>
    new Promise((resolve) => events.once(event, () => resolve()));
  // Either may come first, and the log tells of both.
  const isDone = Promise.all([happened("job:complete"), happened("pool:listen:success")]);
  const workers = runTaskList({ logger, noHandleSignals: true, concurrency: 3, events }, tasks, pool);
  await utils.addJob("listed", { once: false });
  await isDone;
  const idShape = workers.id.replace(/[0-9a-f]{18}$/, "…");
  await workers.gracefulShutdown("enough");
  await workers.promise;
  // The original's last statement may still be under way.
  const isLeft = "select from graphile_worker.jobs where task_identifier = 'listed'";
  while ((await pool.query(isLeft)).rows.length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  return { ran, idShape };
}
