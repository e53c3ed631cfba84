import type { CronOptions } from "../../cron/scheduler.ts";
import { JobSkippedError } from "../../errors.ts";
import type { CronJob } from "../../events.ts";
import type { Lifecycle } from "../../hooks/lifecycle.ts";
import type { TaskSpec } from "../../job.ts";

/** What the scheduler asks and tells the hooks; nothing where there is none. */
export function cronHooks(lifecycle: Lifecycle): Pick<CronOptions, "beforeSchedule" | "onScheduled" | "onTick"> {
  return {
    ...(lifecycle.has("beforeJobSchedule") && { beforeSchedule: ({ job }) => askSchedule(lifecycle, job) }),
    ...(lifecycle.has("cronJobScheduled") && {
      onScheduled: ({ identifier, job }, jobId, scheduledAt) =>
        lifecycle.observe("cronJobScheduled", { identifier, job, jobId, scheduledAt }),
    }),
    ...(lifecycle.has("cronTick") && {
      onTick: (timestamp, identifiers) => lifecycle.observe("cronTick", { timestamp, identifiers }),
    }),
  };
}

async function askSchedule(lifecycle: Lifecycle, job: CronJob): Promise<CronJob | null> {
  const { task, payload, runAt, ...rest } = job;
  const given = { ...rest, runAt: new Date(runAt) } as TaskSpec & { runAt: Date };
  try {
    const wanted = await lifecycle.askSchedule({ identifier: task, payload, spec: given });
    const { runAt: at = given.runAt, ...spec } = wanted.spec;
    return { ...spec, task, payload: wanted.payload as CronJob["payload"], runAt: at.toISOString() };
  } catch (error) {
    if (error instanceof JobSkippedError) return null;
    throw error;
  }
}
