import type {
  CheckUp,
  JobFigures,
  JobTimesOptions,
  JobTrends,
  Limit,
  ListedJob,
  Pause,
  TaskTimes,
  WaitingKeys,
  WorkerStatus,
} from "../../index.ts";
import type { Span } from "../contract.ts";
import type { DashboardContext } from "./context.ts";
import { spanSteps } from "./span-steps.ts";

/* What several pages read, shared by all who look. */

/** As soon as they are collected; until then, those that a worker or another dashboard collected before. */
export async function readFigures({ cache, utils, keepIndexed }: DashboardContext): Promise<JobFigures> {
  keepIndexed();
  const collect = (): Promise<JobFigures> => utils.getJobFigures();
  // The database itself sees to it that collecting takes a hundredth of its time at most.
  const soon = await cache.soon("figures", 2_000, collect, 1);
  if (soon) return soon;
  const earlier = await cache.get("earlier figures", 2_000, () => utils.getJobFigures({ collect: false }));
  return earlier.ageMs === null ? cache.get("figures", 2_000, collect) : earlier;
}

/** Figures by the minute may be some seconds old: they are read for half a hundredth of the time at most. */
const restOfTimes = 200;

export function readTrends({ cache, utils }: DashboardContext, span: Span, task?: string): Promise<JobTrends> {
  const { sinceMs, stepMs } = spanSteps[span];
  return cache.get(
    `trends ${span} ${task ?? ""}`,
    3_000,
    () => utils.getJobTrends({ sinceMs, stepMs, task }),
    restOfTimes,
  );
}

export function readTimes({ cache, utils }: DashboardContext, span: Span): Promise<TaskTimes[]> {
  const { sinceMs }: JobTimesOptions = spanSteps[span];
  return cache.get(`times ${span}`, 3_000, () => utils.getJobTimes({ sinceMs }), restOfTimes);
}

/** Workers that send heartbeats, and, as soon as that is known, who holds which locks: that has to be looked for among all jobs. */
export async function readWorkers({ cache, utils }: DashboardContext): Promise<WorkerStatus[]> {
  const owners = await cache.soon("lock owners", 1_000, () => utils.listWorkers());
  const alive = await cache.get("workers", 1_000, () => utils.listWorkers({ countLocks: false }));
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

export function readPauses({ cache, utils }: DashboardContext): Promise<Pause[]> {
  return cache.get("pauses", 1_000, () => utils.listPauses());
}

/** Limits, with how many jobs run and wait from the figures that all share. */
export async function readLimits(context: DashboardContext): Promise<Limit[]> {
  const { cache, utils } = context;
  const limits = await cache.get("limits", 1_000, () => utils.listLimits({ countJobs: false }));
  if (limits.length === 0) return [];
  const { limits: figures } = await readFigures(context);
  return limits.map((limit) => {
    const scope = limit.isShared ? "shared" : "task";
    const counted = figures.find((known) => known.scope === scope && known.limit === limit.name);
    return { ...limit, running: counted?.running ?? 0, waiting: counted?.waiting ?? 0 };
  });
}

/** The keys that wait at limits, as soon as they are known. */
export async function readWaitingKeys({ cache, utils }: DashboardContext): Promise<readonly WaitingKeys[]> {
  return (await cache.soon("waiting keys", 3_000, () => utils.listWaitingKeys({ lookAt: 300 }))) ?? [];
}

/** Jobs that run, at most a thousand; none until they are found among all the others. */
export async function readRunning({ cache, utils }: DashboardContext): Promise<readonly ListedJob[]> {
  const find = async (): Promise<readonly ListedJob[]> =>
    (await utils.listJobs({ state: "running" }, { limit: 1_000 })).jobs;
  return (await cache.soon("running", 1_000, find)) ?? [];
}

/** What the doctor says, as soon as it is known. It looks at much, so it is asked once a minute while a page is open. */
export function peekHealth({ cache, utils }: DashboardContext): readonly CheckUp[] {
  const found = cache.peek("health", 60_000, () => utils.examineHealth({ isQuick: true })) ?? [];
  // A check that was stopped because it took too long says nothing of the queue.
  return found.filter(({ status, message }) => status !== "ok" && !/timeout/i.test(message));
}
