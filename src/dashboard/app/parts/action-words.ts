import type { JobActionName } from "../../contract.ts";
import { plural } from "../core/format.ts";
import type { IconName } from "./icon.tsx";

interface ActionWords {
  readonly icon: IconName;
  readonly name: string;
  /** What it will do, for the confirmation. */
  readonly effect: string;
  readonly isDanger?: boolean;
  readonly asks?: "reason" | "schedule";
}

export const actionWords: Readonly<Record<JobActionName, ActionWords>> = {
  retry: {
    icon: "retry",
    name: "Retry",
    effect: "Attempts start over, and the jobs are due now. Running jobs are left alone.",
  },
  runNow: { icon: "play", name: "Run now", effect: "The jobs become due now. Running jobs are left alone." },
  reschedule: { icon: "calendar", name: "Reschedule", effect: "Running jobs are left alone.", asks: "schedule" },
  cancel: {
    icon: "cancelled",
    name: "Cancel",
    effect: "Waiting jobs never run. Running ones are asked to stop.",
    isDanger: true,
    asks: "reason",
  },
  fail: {
    icon: "failed",
    name: "Fail",
    effect: "The jobs fail permanently and stay in the list. Running jobs are left alone.",
    isDanger: true,
    asks: "reason",
  },
  remove: {
    icon: "bin",
    name: "Remove",
    effect: "The jobs are deleted as if they had succeeded. This cannot be undone. Running jobs are left alone.",
    isDanger: true,
  },
};

/** "Retry 1,204 jobs", "Run 3 jobs now" */
export function nameEffect(action: JobActionName, count: number): string {
  const jobs = plural(count, "job");
  return action === "runNow" ? `Run ${jobs} now` : `${actionWords[action].name} ${jobs}`;
}
