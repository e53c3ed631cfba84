import type { Pause, WorkerStatus } from "../../../index.ts";
import type { Figures, JobCounts, TaskRow, Warning } from "../../contract.ts";
import type { DashboardContext } from "../context.ts";
import { toSearch } from "../queries.ts";
import { peekHealth } from "../shared-reads.ts";
import { findMissedRuns } from "./cron.ts";

export interface Situation {
  readonly tasks: readonly TaskRow[];
  readonly workers: readonly WorkerStatus[];
  readonly pauses: readonly Pause[];
  readonly counts: JobCounts;
  readonly figures: Figures;
}

/** What needs attention, most urgent first. */
export async function findWarnings(context: DashboardContext, situation: Situation): Promise<Warning[]> {
  const found = [
    ...aboutWorkers(situation),
    ...situation.tasks.flatMap((task) => aboutTask(task, situation)),
    ...aboutFailures(situation),
    ...aboutPauses(situation),
    ...(await findMissedRuns(context)),
    ...aboutHealth(context),
  ];
  return found.sort((a, b) => rank(a) - rank(b)).slice(0, 20);
}

function rank({ severity }: Warning): number {
  return severity === "problem" ? 0 : 1;
}

function aboutWorkers({ workers, counts }: Situation): Warning[] {
  const warnings: Warning[] = [];
  const registered = workers.filter(({ life }) => life !== "unknown");
  const alive = registered.filter(({ life }) => life === "alive");
  if (registered.length > 0 && alive.length === 0) {
    const message = `No worker is alive${counts.waiting.count > 0 ? `, and ${say(counts.waiting.count)} jobs wait` : ""}.`;
    warnings.push({ severity: "problem", kind: "no-worker", message, link: "workers" });
  }
  const silent = registered.length - alive.length;
  if (alive.length > 0 && silent > 0) {
    const message = `${say(silent)} ${silent === 1 ? "worker sends" : "workers send"} no heartbeat any more.`;
    warnings.push({ severity: "warning", kind: "silent-workers", message, link: "workers" });
  }
  const overruns = workers.reduce((total, worker) => total + worker.overruns, 0);
  if (overruns > 0) {
    const message = `${say(overruns)} ${overruns === 1 ? "job runs" : "jobs run"} on after the timeout.`;
    warnings.push({ severity: "warning", kind: "overruns", message, link: "workers" });
  }
  return warnings;
}

function aboutTask(row: TaskRow, { workers }: Situation): Warning[] {
  const link = `jobs${toSearch({ state: "waiting", task: row.task })}`;
  const some = workers.some(({ life }) => life === "alive");
  if (row.ready.count > 0 && row.workers === 0 && some) {
    const message = `No live worker has the task ${row.task}: ${sayCount(row)} ready.`;
    return [{ severity: "problem", kind: "no-worker-for-task", message, link }];
  }
  if (!row.isFallingBehind) return [];
  const alone = row.workers === 1 ? " Only one worker runs it." : "";
  const message = `${row.task} falls behind: ${sayCount(row)} ready, the oldest waits ${span(row.oldestMs ?? 0)}.${alone}`;
  return [{ severity: "warning", kind: "falling-behind", message, link }];
}

/** A tenth of all attempts fails. */
const muchOf = 0.1;

function aboutFailures({ tasks }: Situation): Warning[] {
  return tasks.flatMap((row): Warning[] => {
    const isMuch = (row.failureRate ?? 0) >= muchOf && (row.perMinute ?? 0) > 0;
    if (!isMuch) return [];
    const message = `${Math.round(row.failureRate! * 100)} % of the attempts of ${row.task} fail.`;
    return [{ severity: "warning", kind: "failing", message, link: `errors${toSearch({ task: row.task })}` }];
  });
}

function aboutPauses({ pauses }: Situation): Warning[] {
  return pauses.slice(0, 5).map((pause) => ({
    severity: "warning",
    kind: "paused",
    message: sayPause(pause),
    link: pause.kind === "cron" ? "cron" : "limits",
  }));
}

/** Without the moment, which takes too long to read at a glance; the page of pauses has it. */
function sayPause({ kind, name, pausedBy, reason }: Pause): string {
  const what = kind === "all" ? "everything" : `${kind === "cron" ? "crontab entry" : kind} '${name}'`;
  return `Paused: ${what}${pausedBy === null ? "" : `, by ${pausedBy}`}${reason === null ? "" : `: ${reason}`}.`;
}

/** Said above in other words. */
const alreadySaid = ["pauses", "overruns"];

function aboutHealth(context: DashboardContext): Warning[] {
  return peekHealth(context).flatMap(({ name, status, message }): Warning[] =>
    status === "ok" || alreadySaid.includes(name) ? [] : [{ severity: status, kind: name, message, link: null }],
  );
}

function say(count: number): string {
  return count.toLocaleString("en");
}

function sayCount({ ready }: TaskRow): string {
  return `${say(ready.count)}${ready.isMore ? "+" : ""}`;
}

/** A length of time in one unit: `40 ms`, `2.1 s`, `3 min`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const units: [name: string, ms: number][] = [
    ["days", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1_000],
  ];
  const [name, unit] = units.find(([, size]) => ms >= size)!;
  const value = ms / unit;
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ${name}`;
}
