import type { JobFigures, JobTrends, Pause, TaskTimes, WorkerStatus } from "../../../index.ts";
import type { BoundedCount, Span, TaskRow } from "../../contract.ts";
import type { DashboardContext } from "../context.ts";
import { exactly, toPause } from "../rows.ts";
import { readFigures, readPauses, readTimes, readTrends, readWorkers } from "../shared-reads.ts";
import { spanSteps } from "../span-steps.ts";

/** Counting stops there. */
export const countAtMost = 10_000;
/** A job that could run for longer than this, in a task that is not paused, waits too long. */
const patienceMs = 60_000;
const sparkPoints = 20;

interface Sources {
  readonly figures: JobFigures;
  readonly times: readonly TaskTimes[];
  readonly trends: JobTrends;
  readonly pauses: readonly Pause[];
  readonly workers: readonly WorkerStatus[];
}

/** Every task that has jobs, had some in the span, or that a worker knows; the busiest first. */
export async function readTaskRows(context: DashboardContext, span: Span): Promise<TaskRow[]> {
  const [figures, times, trends, pauses, workers] = await Promise.all([
    readFigures(context),
    readTimes(context, span),
    readTrends(context, span),
    readPauses(context),
    readWorkers(context),
  ]);
  const sources: Sources = { figures, times, trends, pauses, workers };
  const names = new Set([
    ...figures.tasks.filter(hasJobs).map(({ task }) => task),
    ...times.map(({ task }) => task),
    ...pauses.flatMap(({ kind, name }) => (kind === "task" && name !== null ? [name] : [])),
    ...workers.filter(({ life }) => life === "alive").flatMap((worker) => tasksOf(worker) ?? []),
  ]);
  return [...names].map((task) => taskRow(task, span, sources)).sort(byBusiness);
}

export function tasksOf({ metadata }: WorkerStatus): readonly string[] | undefined {
  const { tasks } = (typeof metadata === "object" && metadata !== null ? metadata : {}) as { tasks?: unknown };
  return Array.isArray(tasks) ? tasks.map(String) : undefined;
}

function taskRow(task: string, span: Span, { figures, times, trends, pauses, workers }: Sources): TaskRow {
  const counted = figures.tasks.find((known) => known.task === task);
  const timed = times.find((known) => known.task === task);
  const alive = workers.filter(({ life }) => life === "alive");
  const known = alive.map(tasksOf);
  const isWaiting = counted !== undefined && counted.waiting > 0 && counted.oldestSeconds !== null;
  const oldestMs = isWaiting ? Math.round(counted.oldestSeconds! * 1_000) : null;
  const pause = pauses.find(({ kind, name }) => kind === "all" || (kind === "task" && name === task)) ?? null;
  const capped = (count = 0): BoundedCount => ({ count, isMore: (counted?.isCapped ?? false) && count > 0 });
  return {
    task,
    running: exactly(counted?.running ?? 0),
    ready: capped(counted?.waiting),
    later: capped(counted?.scheduled),
    dead: exactly(counted?.dead ?? 0),
    perMinute: timed ? timed.attempts / (spanSteps[span].sinceMs / 60_000) : null,
    failureRate: timed && timed.attempts > 0 ? timed.failureRate : null,
    waitP95: timed?.wait.p95 ?? null,
    runP95: timed?.run.p95 ?? null,
    oldestMs,
    spark: sparkOf(task, span, trends),
    pause: toPause(pause),
    workers: known.some((tasks) => tasks === undefined) ? null : known.filter((tasks) => tasks?.includes(task)).length,
    isFallingBehind: pause === null && oldestMs !== null && oldestMs > patienceMs,
  };
}

function sparkOf(task: string, span: Span, trends: JobTrends): number[] {
  const own = trends.tasks.filter((known) => known.task === task);
  if (own.length === 0) return [];
  const { sinceMs, stepMs } = spanSteps[span];
  const steps = Math.ceil(sinceMs / stepMs);
  const size = Math.max(1, Math.ceil(steps / sparkPoints));
  const spark = Array.from({ length: Math.ceil(steps / size) }, () => 0);
  const now = Date.now();
  for (const { at, attempts } of own) {
    const ago = Math.floor((now - at.getTime()) / (stepMs * size));
    const index = spark.length - 1 - ago;
    if (index >= 0 && index < spark.length) spark[index]! += attempts;
  }
  return spark;
}

function hasJobs({ waiting, scheduled, running, dead }: JobFigures["tasks"][number]): boolean {
  return waiting + scheduled + running + dead > 0;
}

function byBusiness(a: TaskRow, b: TaskRow): number {
  const weigh = (row: TaskRow): number =>
    (row.isFallingBehind ? 1e12 : 0) + (row.perMinute ?? 0) * 1_000 + row.ready.count;
  return weigh(b) - weigh(a) || a.task.localeCompare(b.task);
}
