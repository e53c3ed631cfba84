import type { ListedJob, WorkerStatus } from "../../../index.ts";
import type { WorkerRow, WorkersPage } from "../../contract.ts";
import type { Page } from "../context.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause, toProgress } from "../rows.ts";
import { readRunning, readWorkers } from "../shared-reads.ts";
import { tasksOf } from "./task-rows.ts";

export const workers: Page<WorkersPage> = async (context, { query }) => {
  new Fields(query, []);
  const [found, running] = await Promise.all([readWorkers(context), readRunning(context)]);
  return { now: moment(new Date()), workers: found.slice(0, 500).map((worker) => toRow(worker, running)) };
};

function toRow(worker: WorkerStatus, running: readonly ListedJob[]): WorkerRow {
  const said = (typeof worker.metadata === "object" && worker.metadata !== null ? worker.metadata : {}) as Record<
    string,
    unknown
  >;
  const number = (name: string): number | null => (typeof said[name] === "number" ? said[name] : null);
  const text = (name: string): string | null => (typeof said[name] === "string" ? said[name] : null);
  const own = running.filter(({ locked_by }) => locked_by === worker.id);
  return {
    id: worker.id,
    life: worker.life,
    startedAt: moment(worker.startedAt),
    lastHeartbeatAt: moment(worker.lastHeartbeatAt),
    hostname: text("hostname"),
    pid: number("pid"),
    version: text("version"),
    appVersion: text("appVersion"),
    slots: number("concurrency"),
    jobs: worker.jobs,
    queues: worker.queues,
    oldestLockAt: moment(worker.oldestLockAt),
    overruns: worker.overruns,
    loopDelayMs: number("loopDelayMs"),
    tasks: tasksOf(worker) ?? null,
    isStopping: said.stopping === true,
    pause: toPause(worker.pause),
    running: own
      .sort((a, b) => a.locked_at!.getTime() - b.locked_at!.getTime())
      .slice(0, 20)
      .map((job) => ({
        id: job.id,
        task: job.task_identifier,
        since: moment(job.locked_at!),
        progress: toProgress(job.progress),
      })),
  };
}
