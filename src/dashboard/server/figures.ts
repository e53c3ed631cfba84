import type {
  CheckUp,
  JobFigures,
  JobTimesOptions,
  JobTrends,
  Limit,
  ListedJob,
  Pause,
  TaskTimes,
  WorkerStatus,
} from "../../index.ts";
import type { Span } from "../contract.ts";
import { type Desk, spanSteps } from "./desk.ts";

/* What several pages read, shared by all who look. */

export function readFigures({ shelf, utils }: Desk): Promise<JobFigures> {
  return shelf.get("figures", 2_000, () => utils.getJobFigures());
}

export function readTrends({ shelf, utils }: Desk, span: Span, task?: string): Promise<JobTrends> {
  const { sinceMs, stepMs } = spanSteps[span];
  return shelf.get(`trends ${span} ${task ?? ""}`, 3_000, () => utils.getJobTrends({ sinceMs, stepMs, task }));
}

export function readTimes({ shelf, utils }: Desk, span: Span): Promise<TaskTimes[]> {
  const { sinceMs }: JobTimesOptions = spanSteps[span];
  return shelf.get(`times ${span}`, 3_000, () => utils.getJobTimes({ sinceMs }));
}

/** Workers that send heartbeats, and, as soon as that is known, who holds which locks: that has to be looked for among all jobs. */
export async function readWorkers({ shelf, utils }: Desk): Promise<WorkerStatus[]> {
  const owners = await shelf.soon("lock owners", 1_000, () => utils.listWorkers());
  const alive = await shelf.get("workers", 1_000, () => utils.listWorkers({ countLocks: false }));
  if (!owners) return alive;
  const known = new Map(owners.map((owner) => [owner.id, owner]));
  const nothing = { jobs: 0, queues: 0, oldestLockAt: null };
  const ids = new Set(alive.map(({ id }) => id));
  return [
    ...alive.map((worker) => {
      const held = known.get(worker.id) ?? nothing;
      return { ...worker, jobs: held.jobs, queues: held.queues, oldestLockAt: held.oldestLockAt };
    }),
    ...owners.filter(({ id, life }) => life === "unknown" && !ids.has(id)),
  ];
}

export function readPauses({ shelf, utils }: Desk): Promise<Pause[]> {
  return shelf.get("pauses", 1_000, () => utils.listPauses());
}

export function readLimits({ shelf, utils }: Desk): Promise<Limit[]> {
  return shelf.get("limits", 1_000, () => utils.listLimits());
}

/** For pages that are about something else: none as long as their jobs are being counted. */
export async function peekLimits({ shelf, utils }: Desk): Promise<Limit[]> {
  return (await shelf.soon("limits", 1_000, () => utils.listLimits())) ?? [];
}

/** Jobs that run, at most a thousand; none until they are found among all the others. */
export async function readRunning({ shelf, utils }: Desk): Promise<readonly ListedJob[]> {
  const find = async (): Promise<readonly ListedJob[]> =>
    (await utils.listJobs({ state: "running" }, { limit: 1_000 })).jobs;
  return (await shelf.soon("running", 1_000, find)) ?? [];
}

/** What the doctor says, as soon as it is known. It looks at much, so it is asked once a minute while somebody is here. */
export function peekHealth({ shelf, utils }: Desk): readonly CheckUp[] {
  const found = shelf.peek("health", 60_000, () => utils.examineHealth()) ?? [];
  // A check that was stopped because it took too long says nothing of the queue.
  return found.filter(({ status, message }) => status !== "ok" && !/timeout/i.test(message));
}
