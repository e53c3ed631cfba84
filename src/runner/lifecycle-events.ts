import type { Emit, HathiEventMap } from "../events.ts";
import type { HookName, ShutdownReason } from "../lifecycle.ts";
import type { Lifecycle } from "../lifecycle-hooks.ts";
import { isLastAttempt } from "../worker/outcome.ts";

type Tell = { [Name in keyof HathiEventMap]?: (payload: HathiEventMap[Name]) => void };

const toldByEvents: HookName[] = [
  "jobStart",
  "jobComplete",
  "jobFail",
  "jobPermanentlyFail",
  "jobInterrupted",
  "localQueueInit",
  "localQueueSetMode",
  "localQueueGetJobsComplete",
  "localQueueReturnJobs",
  "localQueueRefetchDelayStart",
  "localQueueRefetchDelayAbort",
  "localQueueRefetchDelayExpired",
];

/** Tells observers what events tell: gives an `emit` that calls the hooks first, and then passes the event on. */
export function tellHooks(emit: Emit, lifecycle: Lifecycle, workerId: () => string): Emit {
  if (!lifecycle.has(...toldByEvents)) return emit;
  const tell: Tell = { ...tellOfJobs(lifecycle), ...tellOfLocalQueue(lifecycle, workerId) };
  const telling: Emit = (name, payload) => {
    tell[name]?.(payload);
    emit(name, payload);
  };
  telling.heard = (name) => name in tell || emit.heard(name);
  return telling;
}

/** Why a pool was asked to stop; whether it failed is for the pool to say. */
export type StopReason = Exclude<ShutdownReason, "error">;

/** Remembers, from what is said on the way, why a pool stops. */
export function noteStopReason(
  emit: Emit,
  lifecycle: Lifecycle,
): { readonly emit: Emit; readonly stopReason: () => StopReason } {
  let reason: StopReason = "graceful";
  if (!lifecycle.has("workerShutdown")) return { emit, stopReason: () => reason };
  const noting: Emit = (name, payload) => {
    if (name === "gracefulShutdown" || name === "forcefulShutdown") reason = "signal";
    else if (name === "pool:forcefulShutdown" && reason === "graceful") reason = "forceful";
    emit(name, payload);
  };
  noting.heard = (name) => emit.heard(name);
  return { emit: noting, stopReason: () => reason };
}

function tellOfJobs(lifecycle: Lifecycle): Tell {
  return {
    "job:start": ({ job }) => lifecycle.observe("jobStart", { job, workerId: job.locked_by! }),
    "job:complete": ({ job, error, durationMs }) => {
      const workerId = job.locked_by!;
      if (!error) lifecycle.observe("jobComplete", { job, workerId, durationMs });
      else {
        const name = isLastAttempt(job) ? "jobPermanentlyFail" : "jobFail";
        lifecycle.observe(name, { job, workerId, error, durationMs });
      }
    },
    "job:interrupted": ({ job }) =>
      lifecycle.observe("jobInterrupted", { job, workerId: job.locked_by!, reason: "shutdown" }),
  };
}

function tellOfLocalQueue(lifecycle: Lifecycle, id: () => string): Tell {
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
