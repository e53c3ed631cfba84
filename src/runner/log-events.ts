import { isUnreachable } from "../db/sqlstate.ts";
import type { EventHandlers } from "../emit.ts";
import { errorStack, errorTitle, maxTextBytes } from "../error-text.ts";
import { messageOf } from "../errors.ts";
import type { Job } from "../job.ts";
import type { Logger } from "../logger.ts";
import { describePause, nameOfPaused } from "../pause.ts";
import { clip } from "../util/clip.ts";
import type { Worker } from "../worker.ts";
import { withoutPayload } from "./logged-job.ts";

export interface LogEventsOptions {
  readonly logger: Logger;
  readonly taskNames: () => readonly string[];
  /** The payloads of jobs may be handed to the logger. */
  readonly logPayloads: boolean;
}

/** Turns events into log lines. */
export function logEvents({ logger, taskNames, logPayloads }: LogEventsOptions): EventHandlers {
  const isQuiet = Boolean(process.env.NO_LOG_SUCCESS);
  const logged = logPayloads ? (job: Job): object => job : withoutPayload;
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
      // Not when the task returns: until the database knows, the job may still run again.
      "job:complete": ({ worker, job, error, durationMs }) => {
        if (error) return;
        loggerOf(worker).info(`Completed task ${describe(job, durationMs, job.attempts > 1)} with success`, {
          job: logged(job),
          duration: durationMs,
          success: true,
        });
      },
      "pool:listen:success": () =>
        logger.info(`Worker connected and looking for jobs... (${describeTasks(taskNames())})`),
    }),
    "job:error": ({ worker, job, error, durationMs }) =>
      loggerOf(worker).error(
        clip(
          `Failed task ${describe(job, durationMs, true)} with error '${clip(messageOf(error), maxTextBytes / 4)}':\n` +
            `  ${errorStack(error).replaceAll("\n", "\n  ")}`,
          maxTextBytes,
        ),
        { failure: true, job: logged(job), error, duration: durationMs },
      ),
    "job:cancelling": ({ worker, job, error }) =>
      loggerOf(worker).info(`Stopping task ${job.id} (${job.task_identifier}): ${messageOf(error)}`, {
        job: logged(job),
      }),
    "job:cancelled": ({ worker, job, error, durationMs }) =>
      loggerOf(worker).info(
        clip(`Cancelled task ${describe(job, durationMs, true)}: ${messageOf(error)}`, maxTextBytes),
        { job: logged(job), duration: durationMs },
      ),
    "job:snoozed": ({ worker, job, runAt, durationMs }) =>
      loggerOf(worker).info(`Snoozed task ${describe(job, durationMs, false)} until ${runAt.toISOString()}`, {
        job: logged(job),
        duration: durationMs,
      }),
    "job:overrun": ({ worker, job, durationMs, timeoutMs, isReplaced }) =>
      loggerOf(worker).error(
        `Task ${job.task_identifier} is still running job ${job.id} after ${(durationMs / 1000).toFixed(1)} s; its timeout is ` +
          `${timeoutMs} ms. The attempt has failed, but its slot ${isReplaced ? "was replaced and " : ""}stays taken until the ` +
          "task returns. Let the task stop when helpers.abortSignal fires.",
        { job: logged(job), duration: durationMs },
      ),
    "job:lost": ({ job }) =>
      logger.warn(
        `Task ${job.id} (${job.task_identifier}) no longer belonged to this worker when it ended; its outcome was not written.`,
        { job: logged(job) },
      ),
    "job:interrupted": ({ job, reason }) =>
      logger.warn(`Returned task ${job.id} (${job.task_identifier}) before its end: ${reason}`, { job: logged(job) }),
    "pool:pause": ({ pause }) => logger.info(`Not starting what is paused: ${describePause(pause)}`, { pause }),
    "pool:resume": ({ pause }) => logger.info(`No longer paused: ${nameOfPaused(pause)}`, { pause }),
    "worker:getJob:error": ({ worker, error }) => loggerOf(worker).debug(`Failed to acquire job: ${errorTitle(error)}`),
    "pool:gracefulShutdown": ({ message }) => logger.debug(message),
    "pool:forcefulShutdown": ({ message }) => logger.error(message),
    // The pool already logs an unreachable database, once.
    "resetLocked:failure": ({ error }) =>
      logger[isUnreachable(error) ? "debug" : "error"](`Failed to reset stale locks: ${error.message}`, { error }),
  };
}

function describe(job: Job, durationMs: number, withAttempt: boolean): string {
  const attempt = withAttempt ? `, attempt ${job.attempts} of ${job.max_attempts}` : "";
  return `${job.id} (${job.task_identifier}, ${durationMs.toFixed(2)}ms${attempt})`;
}

/** All names of tasks are listed if they take no more than this, as in the original; otherwise the first of them. */
const maxNamesLength = 120;
const shortNamesLength = 60;

function describeTasks(names: readonly string[]): string {
  const all = `'${names.join("', '")}'`;
  if (all.length <= maxNamesLength || names.length < 2) return `task names: ${clip(all, maxNamesLength)}`;
  const shown: string[] = [];
  for (const name of names) {
    if (shown.length > 0 && [...shown, name].join("', '").length > shortNamesLength) break;
    shown.push(clip(name, shortNamesLength));
  }
  return `${names.length} task names: '${shown.join("', '")}' and ${names.length - shown.length} more`;
}
