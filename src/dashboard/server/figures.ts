import type {
  CheckUp,
  JobFigures,
  JobTimesOptions,
  JobTrends,
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

export function readWorkers({ shelf, utils }: Desk): Promise<WorkerStatus[]> {
  return shelf.get("workers", 1_000, () => utils.listWorkers());
}

export function readPauses({ shelf, utils }: Desk): Promise<Pause[]> {
  return shelf.get("pauses", 1_000, () => utils.listPauses());
}

/** Jobs that run; at most a thousand. */
export function readRunning({ shelf, utils }: Desk): Promise<readonly ListedJob[]> {
  return shelf.get("running", 1_000, async () => (await utils.listJobs({ state: "running" }, { limit: 1_000 })).jobs);
}

/** What the doctor says, as soon as it is known. It looks at much, so it is asked once a minute while somebody is here. */
export function peekHealth({ shelf, utils }: Desk): readonly CheckUp[] {
  const found = shelf.peek("health", 60_000, () => utils.examineHealth()) ?? [];
  // A check that was stopped because it took too long says nothing of the queue.
  return found.filter(({ status, message }) => status !== "ok" && !/timeout/i.test(message));
}
