import type { EventHandlers } from "../../emit.ts";
import type { HookName } from "../../hooks/contexts.ts";
import type { Lifecycle } from "../../hooks/lifecycle.ts";

const toldByEvents: HookName[] = [
  "jobStart",
  "jobComplete",
  "jobFail",
  "jobPermanentlyFail",
  "jobCancel",
  "jobSnooze",
  "jobTimeout",
  "jobOverrun",
  "jobInterrupted",
  "pause",
  "resume",
  "localQueueInit",
  "localQueueSetMode",
  "localQueueGetJobsComplete",
  "localQueueReturnJobs",
  "localQueueRefetchDelayStart",
  "localQueueRefetchDelayAbort",
  "localQueueRefetchDelayExpired",
];

/** Tells lifecycle observers what events tell. */
export function eventHooks(lifecycle: Lifecycle, workerId: () => string): EventHandlers {
  return lifecycle.has(...toldByEvents) ? { ...tellOfJobs(lifecycle), ...tellOfLocalQueue(lifecycle, workerId) } : {};
}

const hookByOutcome = {
  succeeded: "jobFail",
  failed: "jobFail",
  permanentlyFailed: "jobPermanentlyFail",
  cancelled: "jobCancel",
} as const;

function tellOfJobs(lifecycle: Lifecycle): EventHandlers {
  return {
    "job:start": ({ job }) => lifecycle.observe("jobStart", { job, workerId: job.locked_by! }),
    "job:complete": ({ job, error, durationMs, outcome, runAt }) => {
      const workerId = job.locked_by!;
      if (!error) lifecycle.observe("jobComplete", { job, workerId, durationMs });
      else if (outcome === "snoozed")
        lifecycle.observe("jobSnooze", { job, workerId, error, durationMs, runAt: runAt! });
      else lifecycle.observe(hookByOutcome[outcome], { job, workerId, error, durationMs });
    },
    "pool:pause": ({ workerPool, pause }) => lifecycle.observe("pause", { workerId: workerPool.id, pause }),
    "pool:resume": ({ workerPool, pause }) => lifecycle.observe("resume", { workerId: workerPool.id, pause }),
    "job:timeout": ({ job, timeoutMs }) =>
      lifecycle.observe("jobTimeout", { job, workerId: job.locked_by!, timeoutMs }),
    "job:overrun": ({ job, timeoutMs, durationMs }) =>
      lifecycle.observe("jobOverrun", { job, workerId: job.locked_by!, timeoutMs, durationMs }),
    "job:interrupted": ({ job }) =>
      lifecycle.observe("jobInterrupted", { job, workerId: job.locked_by!, reason: "shutdown" }),
  };
}

function tellOfLocalQueue(lifecycle: Lifecycle, id: () => string): EventHandlers {
  return {
    "localQueue:init": () => lifecycle.observe("localQueueInit", { workerId: id() }),
    "localQueue:setMode": ({ oldMode, newMode }) =>
      lifecycle.observe("localQueueSetMode", { workerId: id(), oldMode, newMode }),
    "localQueue:getJobs:complete": ({ jobs }) =>
      lifecycle.observe("localQueueGetJobsComplete", { workerId: id(), jobCount: jobs.length }),
    "localQueue:returnJobs": ({ jobs }) =>
      lifecycle.observe("localQueueReturnJobs", { workerId: id(), jobCount: jobs.length }),
    "localQueue:refetchDelay:start": ({ delayMs, threshold, abortThreshold }) =>
      lifecycle.observe("localQueueRefetchDelayStart", {
        workerId: id(),
        durationMs: delayMs,
        threshold,
        abortThreshold,
      }),
    "localQueue:refetchDelay:abort": ({ count, abortThreshold }) =>
      lifecycle.observe("localQueueRefetchDelayAbort", { workerId: id(), count, abortThreshold }),
    "localQueue:refetchDelay:expired": () => lifecycle.observe("localQueueRefetchDelayExpired", { workerId: id() }),
  };
}
