import type { WorkerStatus } from "../../../index.ts";
import type { BoundedCount, Figures, JobCounts, Overview, Series, TaskRow } from "../../contract.ts";
import type { Page } from "../context.ts";
import { readSpan } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { moment, toPause } from "../rows.ts";
import { readFigures, readPauses, readTrends, readWorkers } from "../shared-reads.ts";
import { spanSteps } from "../span-steps.ts";
import { toSeries } from "./series.ts";
import { startMarks } from "./start-marks.ts";
import { readTaskRows } from "./task-rows.ts";
import { findWarnings, span as inWords } from "./warnings.ts";

export const overview: Page<Overview> = async (context, { query }) => {
  const span = readSpan(new Fields(query, ["span"]), "1h");
  const [jobs, trends, tasks, workers, pauses] = await Promise.all([
    readFigures(context),
    readTrends(context, span),
    readTaskRows(context, span),
    readWorkers(context),
    readPauses(context),
  ]);
  const recent = span === "15m" || span === "1h" ? trends : await readTrends(context, "15m");
  const oldest = jobs.oldestWaiting;
  const figures: Figures = {
    ...lastMinute(toSeries(recent, "15m")),
    failureRate: failureRate(toSeries(trends, span)),
    oldestMs: oldest ? Math.max(0, Math.round(oldest.waiting_seconds * 1_000)) : null,
    oldestId: oldest?.id ?? null,
  };
  const counts = sumCounts(tasks);
  const warnings = await findWarnings(context, { tasks, workers, pauses, counts, figures });
  const rate = figures.finishedPerMinute;
  const jobsSaid = rate === null ? "" : ` ${Math.round(rate).toLocaleString("en")} jobs in the last minute.`;
  const oldestSaid =
    figures.oldestMs === null ? " No job waits." : ` The oldest runnable job waits ${inWords(figures.oldestMs)}.`;
  return {
    now: moment(new Date()),
    span,
    warnings,
    summary: `${warnings.length === 0 ? "All good." : ""}${jobsSaid}${oldestSaid}`.trim(),
    figures,
    series: toSeries(trends, span),
    tasks: tasks.slice(0, 200),
    workers: sumWorkers(workers),
    counts,
    pauses: pauses.slice(0, 100).map((pause) => toPause(pause)!),
    starts: startMarks(workers, Date.now() - spanSteps[span].sinceMs),
  };
};

/** Of the last sixty seconds: all of this minute, and of the one before as much as is missing. */
function lastMinute(series: Series): Pick<Figures, "finishedPerMinute" | "waitP95" | "runP95"> {
  const last = series.at.length - 1;
  const ended = (index: number): number | null => {
    const [succeeded, failed] = [series.succeeded[index], series.failed[index]];
    return succeeded == null || failed == null ? null : succeeded + failed;
  };
  const share = (Date.now() / 60_000) % 1;
  const [now, before] = [ended(last), ended(last - 1)];
  const latest = (column: readonly (number | null)[]): number | null =>
    column.slice(-5).findLast((value) => value !== null) ?? null;
  return {
    finishedPerMinute: now === null ? null : now + (before ?? 0) * (1 - share),
    waitP95: latest(series.waitP95),
    runP95: latest(series.runP95),
  };
}

function failureRate({ succeeded, failed }: Series): number | null {
  const sum = (column: readonly (number | null)[]): number =>
    column.reduce<number>((total, count) => total + (count ?? 0), 0);
  const [good, bad] = [sum(succeeded), sum(failed)];
  return good + bad === 0 ? null : bad / (good + bad);
}

function sumCounts(tasks: readonly TaskRow[]): JobCounts {
  const sum = (of: (row: TaskRow) => BoundedCount): BoundedCount => ({
    count: tasks.reduce((total, row) => total + of(row).count, 0),
    isMore: tasks.some((row) => of(row).isMore),
  });
  return {
    waiting: sum(({ ready }) => ready),
    scheduled: sum(({ later }) => later),
    running: sum(({ running }) => running),
    dead: sum(({ dead }) => dead),
  };
}

function sumWorkers(workers: readonly WorkerStatus[]): Overview["workers"] {
  const alive = workers.filter(({ life }) => life === "alive");
  return {
    alive: alive.length,
    silent: workers.filter(({ life }) => life === "silent").length,
    slots: alive.reduce((total, { metadata }) => total + slotsOf(metadata), 0),
    busy: alive.reduce((total, { jobs }) => total + jobs, 0),
  };
}

function slotsOf(metadata: unknown): number {
  const { concurrency } = (typeof metadata === "object" && metadata !== null ? metadata : {}) as {
    concurrency?: unknown;
  };
  return typeof concurrency === "number" ? concurrency : 0;
}
