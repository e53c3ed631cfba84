import { unreachable } from "../errors.ts";
import { formatSpan } from "../util/time-span.ts";
import type { OwnerLife, Reason } from "./reason.ts";

/** A reason in plain sentences. `now` is the database's clock. */
export function describeReason(id: string, reason: Reason, now: Date): string {
  const ago = (since: Date): string => `${formatSpan(now.getTime() - since.getTime())} ago`;
  switch (reason.kind) {
    case "gone":
      return reason.neverExisted
        ? `There is no job ${id}: this id has not been given out yet.`
        : `There is no job ${id} any more: it was completed (which deletes its row) or removed.`;
    case "locked":
      return `It is locked by ${reason.by}, since ${reason.since.toISOString()} (${ago(reason.since)}). ${describeOwner(reason.owner, ago)}`;
    case "exhausted":
      return (
        `Its attempts are used up (${reason.attempts} of ${reason.maxAttempts}), so it is not tried again. ` +
        `Last error: ${reason.lastError ?? "none was recorded"}. To try it again: hathi retry ${id}`
      );
    case "scheduled": {
      const when = `It may not run before ${reason.runAt.toISOString()}, in ${formatSpan(reason.runAt.getTime() - now.getTime())}.`;
      if (reason.attempts === 0) return when;
      return `${when} It failed ${times(reason.attempts)} and waits to be tried again. Last error: ${reason.lastError ?? "none was recorded"}`;
    }
    case "queue-held": {
      const holder = reason.job ? `job ${reason.job.id} (${reason.job.task})` : "no job that is still there";
      return `Its queue '${reason.queue}' is held by ${holder}, locked by ${reason.by} since ${reason.since.toISOString()} (${ago(reason.since)}). ${describeOwner(reason.owner, ago)}`;
    }
    case "queue-order":
      return `${count(reason.ahead, "job")} of its queue '${reason.queue}' come${reason.ahead === 1 ? "s" : ""} first; they run one after the other.`;
    case "no-worker-for-task":
      return `None of the ${count(reason.liveWorkers, "live worker")} has a task '${reason.task}'. Start a worker that has it, or check the spelling.`;
    case "no-worker":
      return reason.liveWorkers === 0
        ? "No live worker is registered: start one."
        : "No connection to this database is listening for jobs: unless your workers only poll, none is running.";
    case "flags":
      return `It carries ${reason.flags.length === 1 ? "the flag" : "the flags"} ${reason.flags.map((flag) => `'${flag}'`).join(", ")}: workers that forbid ${reason.flags.length === 1 ? "it" : "one of them"} leave it alone.`;
    case "jobs-ahead":
      return `${reason.atLeast ? "At least " : ""}${count(reason.ahead, "due job")} come${reason.ahead === 1 ? "s" : ""} before it (lower priority number, or due earlier).`;
    case "ready":
      return `Nothing stands in its way: it has been due since ${reason.since.toISOString()} (${ago(reason.since)}), and the next free worker that has its task takes it.`;
    default:
      return unreachable(reason);
  }
}

function describeOwner({ life, lastHeartbeatAt, where }: OwnerLife, ago: (since: Date) => string): string {
  const worker = where === null ? "That worker" : `That worker (${where})`;
  switch (life) {
    case "alive":
      return `${worker} is alive: its last sign of life was ${ago(lastHeartbeatAt!)}.`;
    case "silent":
      return `${worker} seems dead: its last sign of life was ${ago(lastHeartbeatAt!)}. The next sweep gives its jobs back.`;
    case "unknown":
      return "That worker gives no signs of life, so nobody can tell whether it lives; its locks end four hours after they were taken, or with hathi force-unlock.";
    default:
      return unreachable(life);
  }
}

function count(number: number, noun: string): string {
  return `${number.toLocaleString("en-GB")} ${noun}${number === 1 ? "" : "s"}`;
}

function times(number: number): string {
  return number === 1 ? "once" : `${number} times`;
}
