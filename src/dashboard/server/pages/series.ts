import type { JobTrends, TrendPoint } from "../../../index.ts";
import type { Series, Span } from "../../contract.ts";
import { spanSteps } from "../span-steps.ts";

/** Points at even distances. Nothing is known before the first that was recorded; from then on, a step without jobs is a zero. */
export function toSeries({ points }: JobTrends, span: Span, now = Date.now()): Series {
  const { sinceMs, stepMs } = spanSteps[span];
  const last = Math.floor(now / stepMs) * stepMs;
  const steps = Math.ceil(sinceMs / stepMs);
  const at = Array.from({ length: steps + 1 }, (_, index) => last - (steps - index) * stepMs);
  const byStart = new Map(points.map((point) => [point.at.getTime(), point]));
  const since = Math.min(...byStart.keys());
  const count = (of: (point: TrendPoint) => number): (number | null)[] =>
    at.map((start) => {
      const point = byStart.get(start);
      return point ? of(point) : start < since ? null : 0;
    });
  const time = (of: (point: TrendPoint) => number | null): (number | null)[] =>
    at.map((start) => {
      const point = byStart.get(start);
      return point ? of(point) : null;
    });
  return {
    stepMs,
    at: at.map((start) => start / 1_000),
    succeeded: count(({ succeeded }) => succeeded),
    failed: count(({ failed }) => failed),
    waitP50: time(({ wait }) => wait.p50),
    waitP95: time(({ wait }) => wait.p95),
    waitP99: time(({ wait }) => wait.p99),
    runP50: time(({ run }) => run.p50),
    runP95: time(({ run }) => run.p95),
    runP99: time(({ run }) => run.p99),
  };
}

/** The last points, for those who have the earlier ones. */
export function lastPoints(series: Series, count = 3): Series {
  const cut = <T>(column: readonly T[]): readonly T[] => column.slice(-count);
  return {
    stepMs: series.stepMs,
    at: cut(series.at),
    succeeded: cut(series.succeeded),
    failed: cut(series.failed),
    waitP50: cut(series.waitP50),
    waitP95: cut(series.waitP95),
    waitP99: cut(series.waitP99),
    runP50: cut(series.runP50),
    runP95: cut(series.runP95),
    runP99: cut(series.runP99),
  };
}
