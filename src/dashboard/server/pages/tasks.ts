import type { TaskDetails, TaskRow, TasksPage } from "../../contract.ts";
import type { Page } from "../context.ts";
import { readSpan } from "../queries.ts";
import { Fields } from "../read-fields.ts";
import { Refusal } from "../refusal.ts";
import { exactly, moment, toErrorGroup, toHistoryRow, toPause } from "../rows.ts";
import { readLimits, readPauses, readTrends } from "../shared-reads.ts";
import { spanSteps } from "../span-steps.ts";
import { readCronRows } from "./cron.ts";
import { lookAtFailures } from "./errors.ts";
import { toLimitInfo } from "./limits.ts";
import { toSeries } from "./series.ts";
import { readTaskRows } from "./task-rows.ts";

export const tasks: Page<TasksPage> = async (context, { query }) => {
  const span = readSpan(new Fields(query, ["span"]), "1h");
  return { now: moment(new Date()), span, tasks: (await readTaskRows(context, span)).slice(0, 500) };
};

export const task: Page<TaskDetails> = async (context, { query }) => {
  const fields = new Fields(query, ["name", "span"]);
  const name = fields.text("name", 200);
  const span = readSpan(fields, "1h");
  const { cache, utils } = context;
  const since = (): Date => new Date(Date.now() - spanSteps[span].sinceMs);
  const [rows, trends, limits, crons, errors, failures, pauses] = await Promise.all([
    readTaskRows(context, span),
    readTrends(context, span, name),
    readLimits(context),
    readCronRows(context),
    cache.get(`errors of ${name} ${span}`, 3_000, () =>
      utils.listErrors({ task: name, since: since(), steps: 24, limit: 10, lookAt: lookAtFailures }),
    ),
    cache.get(`failures of ${name}`, 3_000, () =>
      utils.listHistory({ task: name, outcome: ["failed", "permanentlyFailed"] }, { limit: 20 }),
    ),
    readPauses(context),
  ]);
  const found = rows.find((row) => row.task === name);
  const isKnown =
    found || failures.entries.length > 0 || name in context.tasks || crons.some((row) => row.task === name);
  if (!isKnown) throw new Refusal("not-found", "No job, worker or crontab has a task of this name.");
  const pause = pauses.find((one) => one.kind === "all" || (one.kind === "task" && one.name === name)) ?? null;
  return {
    now: moment(new Date()),
    span,
    row: found ?? { ...idleRow(name), pause: toPause(pause) },
    series: toSeries(trends, span),
    limits: limits.filter((limit) => limit.tasks.includes(name)).map((limit) => toLimitInfo(limit, context.redact)),
    errors: errors.map((group) => toErrorGroup(group, lookAtFailures)),
    failures: failures.entries.map(toHistoryRow),
    cron: crons.filter((row) => row.task === name),
  };
};

function idleRow(task: string): TaskRow {
  return {
    task,
    running: exactly(0),
    ready: exactly(0),
    later: exactly(0),
    dead: exactly(0),
    perMinute: null,
    failureRate: null,
    waitP95: null,
    runP95: null,
    oldestMs: null,
    spark: [],
    pause: null,
    workers: null,
    isFallingBehind: false,
  };
}
