import type { Emit, HathiEventMap } from "../events.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import type { Worker } from "../worker.ts";

type Log = { [Name in keyof HathiEventMap]?: (payload: HathiEventMap[Name]) => void };

/** Turns events into log lines: gives an `emit` that says each event in words first, and then passes it on. */
export function logEvents(emit: Emit, logger: Logger, taskNames: () => readonly string[]): Emit {
  const log = makeLog(logger, taskNames);
  const logged: Emit = (name, payload) => {
    try {
      log[name]?.(payload);
    } catch {
      // A logger that fails must not take a job with it, and there is nowhere to say so.
    }
    emit(name, payload);
  };
  logged.heard = (name) => name in log || emit.heard(name);
  return logged;
}

function makeLog(logger: Logger, taskNames: () => readonly string[]): Log {
  const isQuiet = Boolean(process.env.NO_LOG_SUCCESS);
  const loggerByWorker = new WeakMap<Worker, Logger>();
  const loggerOf = (worker: Worker): Logger => {
    let known = loggerByWorker.get(worker);
    if (!known) {
      known = logger.scope({ label: "worker", workerId: worker.workerId });
      loggerByWorker.set(worker, known);
    }
    return known;
  };
  return {
    ...(!isQuiet && {
      "job:success": ({ worker, job, durationMs }) =>
        loggerOf(worker).info(`Completed task ${describe(job, durationMs, job.attempts > 1)} with success`, {
          job,
          success: true,
        }),
      "pool:listen:success": () =>
        logger.info(`Worker connected and looking for jobs... (task names: '${taskNames().join("', '")}')`),
    }),
    "job:error": ({ worker, job, error, durationMs }) =>
      loggerOf(worker).error(
        `Failed task ${describe(job, durationMs, true)} with error '${error.message}'` +
          `${error.stack ? `:\n  ${error.stack.replaceAll("\n", "\n  ").trim()}` : ""}`,
        { failure: true, job, error, duration: durationMs },
      ),
    "job:lost": ({ job }) =>
      logger.warn(
        `Task ${job.id} (${job.task_identifier}) was no longer this worker's when it ended; its end was not written.`,
        { job },
      ),
    "job:interrupted": ({ job, reason }) =>
      logger.warn(`Gave back task ${job.id} (${job.task_identifier}) before its end: ${reason}`, { job }),
    "worker:getJob:error": ({ worker, error }) => loggerOf(worker).debug(`Failed to acquire job: ${String(error)}`),
    "pool:gracefulShutdown": ({ message }) => logger.debug(message),
    "pool:forcefulShutdown": ({ message }) => logger.error(message),
    "resetLocked:failure": ({ error }) => logger.error(`Failed to reset stale locks: ${error.message}`, { error }),
  };
}

function describe(job: Job, durationMs: number, withAttempt: boolean): string {
  const attempt = withAttempt ? `, attempt ${job.attempts} of ${job.max_attempts}` : "";
  return `${job.id} (${job.task_identifier}, ${durationMs.toFixed(2)}ms${attempt})`;
}
