import type { TaskSpec } from "../../../index.ts";
import { Fields } from "../read-fields.ts";
import { Refusal } from "../refusal.ts";
import type { Action } from "./action.ts";

/** Adds the job of a crontab entry now, beside its regular runs. */
export const runCron: Action = ({ utils, cronItems }, body) => {
  const name = new Fields(body, ["identifier"]).text("identifier");
  const item = cronItems.find(({ identifier }) => identifier === name);
  if (!item) throw new Refusal("not-found", "This dashboard does not know the crontab entry, so it cannot run it.");
  const { queueName, priority, maxAttempts, flags, jobKey, jobKeyMode } = item.options;
  const spec: TaskSpec = {
    ...(queueName !== undefined && { queueName }),
    ...(priority !== undefined && { priority }),
    ...(maxAttempts !== undefined && { maxAttempts }),
    ...(flags !== undefined && { flags }),
    ...(jobKey && { jobKey }),
    ...(jobKey && jobKeyMode !== undefined && { jobKeyMode }),
  };
  return {
    target: { name },
    async run() {
      const payload = { ...item.payload, _cron: { ts: new Date().toISOString(), backfilled: false } };
      const job = await utils.addJob(item.task, payload, spec);
      return { changed: 1, ids: [String(job.id)], message: `Added job ${job.id} of task '${item.task}'.` };
    },
  };
};

/** Frees what a dead worker holds. */
export const unlockWorker: Action = ({ utils }, body) => {
  const worker = new Fields(body, ["worker"]).text("worker");
  return {
    target: { name: worker },
    async run() {
      const found = (await utils.listWorkers()).find(({ id }) => id === worker);
      if (!found) throw new Refusal("not-found", "There is no worker of this name that holds anything.");
      if (found.life === "alive") {
        throw new Refusal("conflict", "This worker sends heartbeats, so it is alive. Pause it, and its jobs finish.");
      }
      await utils.forceUnlockWorkers([worker]);
      return { changed: found.jobs, message: `Unlocked ${found.jobs} jobs and ${found.queues} queues.` };
    },
  };
};
