import { unreachable } from "../errors.ts";
import { nameOfPaused } from "../pause.ts";
import { suggestion } from "../util/nearest.ts";
import { formatSpan } from "../util/time-span.ts";
import type { OwnerLife, Reason } from "./job-reason.ts";

/** A reason in plain sentences. `now` is the database's clock. */
export function describeReason(id: string, reason: Reason, now: Date): string {
  const ago = (since: Date): string => `${formatSpan(now.getTime() - since.getTime())} ago`;
  switch (reason.kind) {
    case "gone":
      return reason.neverExisted
        ? `There is no job ${id}: this id has not been given out yet.`
        : `There is no job ${id} any more: it was completed (which deletes its row) or removed.`;
    case "cancelled": {
      const why = reason.reason === null ? "" : ` Reason: ${reason.reason}.`;
      const who = `at ${reason.at.toISOString()} (${ago(reason.at)})${reason.by === null ? "" : ` by ${reason.by}`}.${why}`;
      const name = `Job ${id}${reason.task === null ? "" : ` (${reason.task})`}`;
      if (reason.hasSucceeded) return `${name} was cancelled ${who} It had finished before it could be stopped.`;
      if (reason.isGone) return `${name} was cancelled ${who} Cancelled jobs are gone.`;
      return `It was cancelled while it was running, ${who} Its signal has aborted, and it never runs again.`;
    }
    case "snoozed":
      return `Its task has put it off ${times(reason.snoozes)}, last at ${reason.lastAt.toISOString()} (${ago(reason.lastAt)}).`;
    case "overrunning":
      return (
        `Job ${reason.job.id} (${reason.job.task}) has been running since ${reason.since.toISOString()} (${ago(reason.since)}) in ${reason.by}, ` +
        `longer than its timeout of ${reason.timeoutMs} ms. That attempt has failed, but its slot and its queue stay taken until its task returns.`
      );
    case "locked":
      return `It is locked by ${reason.by}, since ${reason.since.toISOString()} (${ago(reason.since)}). ${describeOwner(reason.owner, ago)}`;
    case "exhausted":
      return (
        `Its attempts are used up (${reason.attempts} of ${reason.maxAttempts}), so it is not tried again. ` +
        `${lastError(reason)} To try it again: hathi retry ${id}`
      );
    case "scheduled": {
      const when = `It may not run before ${reason.runAt.toISOString()}, in ${formatSpan(reason.runAt.getTime() - now.getTime())}.`;
      if (reason.attempts === 0) return when;
      return `${when} It failed ${times(reason.attempts)} and waits to be tried again. ${lastError(reason)}`;
    }
    case "paused": {
      const { pause } = reason;
      const until = pause.until ? `, until ${pause.until.toISOString()}` : "";
      const why = pause.reason === null ? "" : ` Reason: ${pause.reason}.`;
      const flag = pause.kind === "all" ? "--all" : `--${pause.kind} ${pause.name}`;
      return `Paused: ${nameOfPaused(pause)}, by ${pause.pausedBy ?? "an unknown role"} at ${pause.pausedAt.toISOString()} (${ago(pause.pausedAt)})${until}.${why} To resume: hathi resume ${flag}`;
    }
    case "limited":
      return describeLimit(reason, now);
    case "queue-held": {
      const holder = reason.job ? `job ${reason.job.id} (${reason.job.task})` : "no job that is still there";
      return `Its queue '${reason.queue}' is held by ${holder}, locked by ${reason.by} since ${reason.since.toISOString()} (${ago(reason.since)}). ${describeOwner(reason.owner, ago)}`;
    }
    case "queue-order":
      return `${count(reason.ahead, "job")} of its queue '${reason.queue}' come${reason.ahead === 1 ? "s" : ""} first; they run one after the other.`;
    case "no-worker-for-task":
      return (
        (reason.liveWorkers === 1
          ? `The only live worker does not have a task '${reason.task}'.`
          : `None of the ${count(reason.liveWorkers, "live worker")} has a task '${reason.task}'.`) +
        (suggestion(reason.task, reason.knownTasks) || " Start a worker that has it, or check the spelling.")
      );
    case "no-worker":
      return reason.liveWorkers === 0
        ? "No live worker is registered: start one."
        : "No connection to this database is listening for jobs: unless your workers only poll, none is running.";
    case "task-missing":
      return (
        `The row of its task (id ${reason.taskId}) is gone from _private_tasks, so no worker can run it. ` +
        "Set its task_id to that of an existing task, or remove the job."
      );
    case "queue-missing":
      return (
        `The row of its queue (id ${reason.queueId}) is gone from _private_job_queues, so no worker can claim it. ` +
        "Set its job_queue_id to that of an existing queue, or to null."
      );
    case "flags":
      return `It carries ${reason.flags.length === 1 ? "the flag" : "the flags"} ${reason.flags.map((flag) => `'${flag}'`).join(", ")}: workers that forbid ${reason.flags.length === 1 ? "it" : "one of them"} leave it alone.`;
    case "jobs-ahead":
      return `${reason.atLeast ? "At least " : ""}${count(reason.ahead, "due job")} come${reason.ahead === 1 ? "s" : ""} before it (lower priority number, or due earlier).`;
    case "unblocked":
      return `Nothing stands in its way: it has been due since ${reason.since.toISOString()} (${ago(reason.since)}), and the next free worker that has its task takes it.`;
    default:
      return unreachable(reason);
  }
}

/** `isCut`: more may be ahead than were counted. */
function describeLine(ahead: number, isCut: boolean): string {
  if (ahead === 0) return isCut ? "Jobs of other keys come before it" : "It is next in line";
  if (ahead > 10_000) return "More than 10,000 due jobs of this limit are ahead of it";
  return `${isCut ? "At least " : ""}${count(ahead, "due job")} of this limit ${ahead === 1 ? "is" : "are"} ahead of it`;
}

function describeLimit(reason: Extract<Reason, { kind: "limited" }>, now: Date): string {
  const { limit, key, places, periodMs, taken, holders, ahead, isCut, releaseAt } = reason;
  const name = `the limit '${limit}'${key === null ? "" : ` of key '${key}'`}`;
  const line = describeLine(ahead, isCut);
  const release = releaseAt
    ? ` at ${releaseAt.toISOString()}, in ${formatSpan(releaseAt.getTime() - now.getTime())}`
    : " soon";
  switch (reason.by) {
    case "hold":
      return `A task holds back ${name}: it is released${release}.${reason.reason === null ? "" : ` Reason: ${reason.reason}.`}`;
    case "rate":
      return `It waits for ${name}: ${places} starts in ${formatSpan(periodMs ?? 0)}. The next one is admitted${release}. ${line}.`;
    case "concurrency": {
      const who = holders.map((holder) => `job ${holder.id} (${holder.task}) in ${holder.by ?? "an unknown worker"}`);
      return `It waits for ${name}: ${taken} of ${places} places are taken${who.length > 0 ? `, by ${who.join(", ")}` : ""}. ${line}.`;
    }
    default:
      return unreachable(reason.by);
  }
}

function describeOwner({ life, lastHeartbeatAt, where }: OwnerLife, ago: (since: Date) => string): string {
  const worker = where === null ? "That worker" : `That worker (${where})`;
  switch (life) {
    case "alive":
      return `${worker} is alive: its last heartbeat was ${ago(lastHeartbeatAt!)}.`;
    case "silent":
      return `${worker} seems dead: its last heartbeat was ${ago(lastHeartbeatAt!)}. The next sweep recovers its jobs.`;
    case "recovery":
      return "It was running when its worker died. A worker that is alive runs it again shortly, one such job at a time.";
    case "unknown":
      return "That worker sends no heartbeats, so it is not known whether it is alive; its locks end four hours after they were taken, or with hathi force-unlock.";
    default:
      return unreachable(life);
  }
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString("en-GB")} ${noun}${number === 1 ? "" : "s"}`;
}

/** Errors often end with a full stop of their own. */
function lastError({ lastError: error }: { readonly lastError: string | null }): string {
  if (error === null || error === "") return "No error was recorded.";
  return `Last error: ${error}${/[.!?…]$/.test(error) ? "" : "."}`;
}

function times(number: number): string {
  return number === 1 ? "once" : `${number} times`;
}
