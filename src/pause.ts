export type PauseKind = "task" | "queue" | "worker" | "cron" | "all";

type Only<Kind extends PauseKind, Name> = { readonly [Key in Kind]: Name } & {
  readonly [Key in Exclude<PauseKind, Kind>]?: never;
};

/** What can be paused: the jobs of a task, those of a named queue, one worker, an entry of the crontab, or everything. */
export type PauseTarget =
  | Only<"task", string>
  | Only<"queue", string>
  /** Its id as `hathi workers` lists it, or its `workerId`. */
  | Only<"worker", string>
  /** Its identifier as `hathi cron list` shows it. Runs that fall due meanwhile add no job. */
  | Only<"cron", string>
  | Only<"all", true>;

/** One pause that is in force. */
export interface Pause {
  readonly kind: PauseKind;
  /** Of the task, queue, worker or crontab entry; null for `all`. */
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
  if (kind === "all") return "everything";
  return `${kind === "cron" ? "crontab entry" : kind} '${name}'`;
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
