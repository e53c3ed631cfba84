import type { Run, WorkerProcess } from "./worker-process.ts";

export function allRuns(workers: readonly WorkerProcess[]): Run[] {
  return workers.flatMap((worker) => worker.runs());
}

/** How often each job ran. */
export function countRuns(runs: readonly Run[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { id } of runs) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

/** The clocks of two processes agree within this. */
const clockMs = 0.5;

/** Pairs of runs of one named queue, or of whatever else is said, that were under way at the same time. */
export function findOverlaps(
  runs: readonly Run[],
  keyOf: (run: Run) => number | string | null = ({ queueId }) => queueId,
): [Run, Run][] {
  const overlaps: [Run, Run][] = [];
  const last = new Map<number | string, Run>();
  for (const run of runs.toSorted((a, b) => a.startedAt - b.startedAt)) {
    const key = keyOf(run);
    if (key === null) continue;
    const before = last.get(key);
    if (before && before.endedAt > run.startedAt + clockMs) overlaps.push([before, run]);
    if (!before || before.endedAt < run.endedAt) last.set(key, run);
  }
  return overlaps;
}
