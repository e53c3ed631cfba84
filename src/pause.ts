/** What can be paused: the jobs of a task, those of a named queue, one worker, or everything. */
export type PauseTarget =
  | { readonly task: string; readonly queue?: never; readonly worker?: never; readonly all?: never }
  | { readonly queue: string; readonly task?: never; readonly worker?: never; readonly all?: never }
  /** Its id as `hathi workers` lists it, or its `workerId`. */
  | { readonly worker: string; readonly task?: never; readonly queue?: never; readonly all?: never }
  | { readonly all: true; readonly task?: never; readonly queue?: never; readonly worker?: never };

export type PauseKind = "task" | "queue" | "worker" | "all";

/** One pause that is in force. */
export interface Pause {
  readonly kind: PauseKind;
  /** Of the task, queue or worker; null for `all`. */
  readonly name: string | null;
  readonly pausedAt: Date;
  /** When it ends by itself; null if it has to be resumed. */
  readonly until: Date | null;
  readonly reason: string | null;
  /** Who paused: what the caller said, or else the database role. */
  readonly pausedBy: string | null;
}

/** `task 'mail'`, `everything`: for sentences. */
export function nameOfPaused({ kind, name }: Pick<Pause, "kind" | "name">): string {
  return kind === "all" ? "everything" : `${kind} '${name}'`;
}

/** Describes a pause in one line: `task 'mail' until 2026-01-01T00:00:00.000Z, paused by ann at …: reason`. */
export function describePause(pause: Pause): string {
  const until = pause.until ? ` until ${pause.until.toISOString()}` : "";
  const by = pause.pausedBy === null ? "" : ` by ${pause.pausedBy}`;
  const reason = pause.reason === null ? "" : `: ${pause.reason}`;
  return `${nameOfPaused(pause)}${until}, paused${by} at ${pause.pausedAt.toISOString()}${reason}`;
}
/** The pause that keeps such a job from starting, the widest first; null if there is none. */
export function findPause(
  pauses: readonly Pause[],
  job: { readonly task: string | null; readonly queue: string | null },
): Pause | null {
  const find = (kind: PauseKind, name: string | null): Pause | undefined =>
    pauses.find((pause) => pause.kind === kind && pause.name === name);
  return (
    find("all", null) ??
    (job.queue === null ? undefined : find("queue", job.queue)) ??
    (job.task === null ? undefined : find("task", job.task)) ??
    null
  );
}
