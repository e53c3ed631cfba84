import type { Database } from "../../db/database.ts";
import { type PauseReport, type ReportedPause, reportPauses } from "../../db/statements/pauses.ts";
import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { Pause } from "../../pause.ts";
import type { Service } from "../../util/service.ts";
import { clearInterval, clearTimeout, monotonicMs, setInterval, setTimeout } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";

export interface PauseGateOptions {
  readonly database: Database;
  readonly workerPool: WorkerPool;
  /** The names by which this worker can be paused. */
  readonly workerNames: () => readonly string[];
  readonly useNodeTime: boolean;
  readonly emit: Emit;
  /** Jobs are held, and no notification would tell of a pause. */
  readonly mustAsk: () => boolean;
  /** More is paused than before: jobs that are held may be concerned. */
  readonly onPaused: () => void;
  /** A pause is over: jobs may be due that no scan has seen. */
  readonly onResumed: () => void;
  /** A pause should have ended by itself now. */
  readonly onEnd: () => void;
}

/** How often to ask while jobs are held and no notification would tell of a pause. */
const askMs = 500;
/** Node's timers fire at once when asked for more. */
const maxTimerMs = 2 ** 31 - 1;

/**
 * Knows what is paused, from the response to each claim and to each notification of a change. The claim itself takes nothing that is paused; the
 * gate is for jobs that were claimed before.
 */
export class PauseGate implements Service {
  readonly #options: PauseGateOptions;
  #pauseByKey = new Map<string, Pause>();
  #isShut = false;
  readonly #tasks = new Set<string>();
  readonly #queueIds = new Set<number>();
  /** When the database was asked for what we know. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #mustAskAgain = false;
  #timer: NodeJS.Timeout | undefined;
  #end: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: PauseGateOptions) {
    this.#options = options;
  }

  /** True if anything is paused. */
  get isActive(): boolean {
    return this.#pauseByKey.size > 0;
  }

  isPaused({ task_identifier, job_queue_id }: Job): boolean {
    return (
      this.#isShut || this.#tasks.has(task_identifier) || (job_queue_id !== null && this.#queueIds.has(job_queue_id))
    );
  }

  start(): void {
    this.#timer = setInterval(() => {
      if (this.#options.mustAsk()) this.ask();
    }, askMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
    clearTimeout(this.#end);
  }

  /** Something may have been paused or resumed. A failure is left to the next claim, which says the same. */
  ask(): void {
    if (this.#isStopped) return;
    if (this.#asking) {
      this.#mustAskAgain = true;
      return;
    }
    this.#asking = this.#ask()
      .catch(() => undefined)
      .then(() => {
        this.#asking = undefined;
        if (!this.#mustAskAgain) return;
        this.#mustAskAgain = false;
        this.ask();
      });
  }

  /** Takes note of what the database says is paused; older answers than the last are ignored. */
  learn(text: string | null, askedAt: number): void {
    if (askedAt < this.#askedAt) return;
    this.#askedAt = askedAt;
    if (text === null && !this.isActive) return;
    const { pauses, endsInMs }: PauseReport = text === null ? { pauses: [], endsInMs: null } : JSON.parse(text);
    const before = this.#pauseByKey;
    this.#pauseByKey = new Map(pauses.map((pause) => [keyOf(pause), toPause(pause)]));
    this.#isShut = pauses.some(({ kind }) => kind === "all" || kind === "worker");
    fill(
      this.#tasks,
      pauses.flatMap(({ kind, name }) => (kind === "task" ? (name ?? []) : [])),
    );
    fill(
      this.#queueIds,
      pauses.flatMap(({ queueId }) => queueId ?? []),
    );
    this.#tell(before);
    this.#awaitEnd(endsInMs);
  }

  async #ask(): Promise<void> {
    const { database, workerNames, useNodeTime } = this.#options;
    const askedAt = monotonicMs();
    const clock = useNodeTime ? new Date() : null;
    const [row] = await database.run(reportPauses, { workerNames: workerNames(), clock });
    this.learn(row?.pauses ?? null, askedAt);
  }

  #awaitEnd(inMs: number | null): void {
    clearTimeout(this.#end);
    if (inMs === null || this.#isStopped) return;
    const ms = Math.min(Math.max(1, Math.ceil(inMs)), maxTimerMs);
    this.#end = setTimeout(() => this.#options.onEnd(), ms).unref();
  }

  #tell(before: ReadonlyMap<string, Pause>): void {
    const { emit, workerPool, onPaused, onResumed } = this.#options;
    const begun = [...this.#pauseByKey].filter(([key]) => !before.has(key));
    const ended = [...before].filter(([key]) => !this.#pauseByKey.has(key));
    if (begun.length > 0) onPaused();
    if (ended.length > 0) onResumed();
    for (const [, pause] of begun) emit("pool:pause", { workerPool, pause });
    for (const [, pause] of ended) emit("pool:resume", { workerPool, pause });
  }
}

/** A queue whose row was made after its pause gets its id later. */
function keyOf({ kind, name, queueId, pausedAt }: ReportedPause): string {
  return JSON.stringify([kind, name, queueId, pausedAt]);
}

function toPause({ kind, name, reason, pausedBy, pausedAt, until }: ReportedPause): Pause {
  return { kind, name, pausedAt: new Date(pausedAt), until: until === null ? null : new Date(until), reason, pausedBy };
}

function fill<Item>(set: Set<Item>, items: readonly Item[]): void {
  set.clear();
  for (const item of items) set.add(item);
}
