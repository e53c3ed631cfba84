import type { Emit } from "../../events.ts";
import type { Job } from "../../job.ts";
import type { JobCancelledError, TimeoutError } from "../../job-errors.ts";
import type { Task, TaskHelpers, TaskList } from "../../task.ts";
import type { TaskRunSettings } from "../../task-options.ts";
import { monotonicMs, queueMicrotask, setImmediate } from "../../util/timers.ts";
import { Buffer, type Unstarted } from "../claim/buffer.ts";
import type { Room } from "../claim/claimer.ts";
import { HoldWatch } from "../claim/hold-watch.ts";
import { Pace } from "../claim/pace.ts";
import { refusalOf } from "../claim/unreadable.ts";
import type { PoolInterceptors } from "../pool-hooks.ts";
import { EndedJob } from "../settle/ended-job.ts";
import type { StopSwitch } from "../stop/stop-switch.ts";
import type { Completions } from "./completions.ts";
import { Deadlines } from "./deadlines.ts";
import { decide } from "./decide.ts";
import type { MakeHelpers } from "./helpers.ts";
import { JobRun } from "./job-run.ts";
import { LoopTurn } from "./loop-turn.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import type { Overruns } from "./overruns.ts";
import { runTask } from "./run-task.ts";
import type { Slot } from "./slot.ts";
import { type JobStart, TimedStarts } from "./timed-starts.ts";

const notCommitted =
  "The task completed its job in a transaction, and returned; but the transaction was not committed, so nothing of it has happened.";
/** Finished jobs that the database does not know of yet: beyond this no more are started. */
const maxUnsettled = 4_000;

export interface DispatcherOptions {
  readonly slots: readonly Slot[];
  readonly tasks: TaskList;
  readonly emit: Emit;
  readonly makeHelpers: MakeHelpers;
  readonly aroundRun: PoolInterceptors["aroundRun"] | undefined;
  /** Takes it from here: how a job ended is announced and written. */
  readonly settle: (ended: EndedJob) => void;
  /** How many outcomes are still to be written. */
  readonly unsettled: () => number;
  /** A fixed number of jobs to hold, given by the user, and how long; without it the pool judges by itself. */
  readonly localQueue: { readonly size: number; readonly ttl: number } | undefined;
  /** False if what may run can change from one job to the next. */
  readonly mayHoldAhead: boolean;
  /** Jobs share our only connection: nothing of ours may come between the statements of a job, which may be a transaction. */
  readonly isAlone: boolean;
  readonly stopSwitch: () => StopSwitch;
  readonly pauses: { readonly isActive: boolean; isPaused(job: Job): boolean };
  /** Claimed jobs that will be accepted when their payload is read. */
  readonly reading: () => readonly Job[];
  /** False while others may take our jobs, or have done so. */
  readonly mayStart: () => boolean;
  /** How jobs of this task run; undefined if it has no options. */
  readonly taskOptions: (name: string, task: Task) => TaskRunSettings | undefined;
  readonly overruns: Overruns;
  readonly completions: Completions;
  /** Runs a task whose transaction commits with the completion of its job. */
  readonly runInTransaction: (run: JobRun, task: Task, helpers: TaskHelpers) => Promise<RunOutcome>;
  /** A job was completed by its transaction, and its task threw all the same. */
  readonly onThrownAfterCommit: (job: Job, error: Error) => void;
  /** These are jobs that still overrun here from an earlier attempt, and must not start again yet. */
  readonly onOverrunning: (jobs: readonly Job[]) => void;
  /** A task's own back-off failed; the usual one counts. */
  readonly onBadBackoff: (error: unknown) => void;
  /** There is room for more. */
  readonly onRoom: () => void;
  /** Nothing is held any more. */
  readonly onDrained: () => void;
  /** These jobs were claimed too long ago without having been started. */
  readonly onHeldTooLong: (unstarted: Unstarted) => void;
  /** A job that could have started was held for as long as the user allows. */
  readonly onExpired: () => void;
}

/** Starts claimed jobs in free slots, in order, and hands over how each one ended. */
export class Dispatcher {
  readonly #buffer = new Buffer();
  readonly #options: DispatcherOptions;
  readonly #free: Slot[];
  readonly #pace = new Pace();
  readonly #deadlines: Deadlines;
  /** Why claimed jobs that are not started must not start, by id. */
  readonly #cancelledById = new Map<string, JobCancelledError>();
  #running = 0;
  #returns = 0;
  #isClosed = false;
  /** Jobs that start at a given moment, and when those start that are about to be accepted. */
  readonly #timed = new TimedStarts(() => this.#fill());
  readonly #startById = new Map<string, JobStart>();
  readonly #turn = new LoopTurn(() => this.#fill());
  readonly #holdWatch: HoldWatch;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#holdWatch = new HoldWatch({
      held: () => this.#buffer,
      hasFreeSlot: () => this.#free.length > 0,
      ttlMs: options.localQueue?.ttl,
      onStall: () => {
        this.#pace.observeStall(monotonicMs());
        this.#returnAll();
      },
      onOverdue: (before) => this.#returnOverdue(before),
    });
    this.#deadlines = new Deadlines({
      runs: () => this.#runs(),
      onTimeout: (run, error) =>
        options.emit("job:timeout", { worker: run.worker, job: run.job, timeoutMs: error.timeoutMs }),
      onOverrun: (run, error) => this.#overrun(run, error),
    });
    this.#free = options.slots.toReversed();
  }

  /** Nothing is held, running or waiting to be written. */
  get isQuiet(): boolean {
    return this.#running === 0 && this.waiting === 0 && this.#options.unsettled() === 0;
  }

  get freeSlots(): readonly Slot[] {
    return this.#free;
  }

  /** How many claimed jobs are not started. */
  get waiting(): number {
    return this.#buffer.size + this.#timed.size;
  }

  /** Claimed jobs that are not started. */
  unstarted(): Job[] {
    return this.#timed.size > 0 ? [...this.#timed.jobs(), ...this.#buffer.jobs()] : this.#buffer.jobs();
  }

  /** Hands out what was not started. */
  takeUnstarted(): Unstarted {
    return join(
      this.#timed.takeWhere(() => true),
      this.#buffer.drain(),
    );
  }

  /** When these jobs start, once they are accepted. */
  expect(jobs: readonly Job[], starts: ReadonlyMap<string, JobStart>): void {
    for (const { id } of jobs) {
      const start = starts.get(id);
      if (start) this.#startById.set(id, start);
    }
  }

  /** Jobs that run and whose outcome is still to come. */
  running(): Job[] {
    return this.#runs()
      .filter(({ isAbandoned }) => !isAbandoned)
      .map(({ job }) => job);
  }

  /** Jobs that are claimed and not known to be cancelled. */
  cancellable(): string[] {
    const running = this.#runs().filter((run) => !run.cancelled && (!run.isAbandoned || run.isOverrunning));
    const waiting = this.#notStarted().filter(({ id }) => !this.#cancelledById.has(id));
    return [...running.map(({ job }) => job), ...waiting].map(({ id }) => id);
  }

  /** Tells a job to stop: it counts as cancelled unless it succeeds. One that has not started does not start. */
  cancel(jobId: string, error: JobCancelledError): void {
    const run = this.#runs().find(({ job }) => job.id === jobId);
    if (!run) {
      const waiting = new Set(this.#notStarted().map(({ id }) => id));
      if (waiting.has(jobId)) this.#cancelledById.set(jobId, error);
      for (const id of this.#cancelledById.keys()) if (!waiting.has(id)) this.#cancelledById.delete(id);
      return;
    }
    if (run.cancelled) return;
    run.cancelled = error;
    this.#options.emit("job:cancelling", { worker: run.worker, job: run.job, error });
    run.abort(error);
  }

  /** Tells everything that runs under this switch to stop. */
  abortAll(stopped: StopSwitch, reason: Error): void {
    for (const run of this.#runs()) if (run.stopSwitch === stopped) run.abort(reason);
  }

  /** False if we have claimed the same job again, so that this run is of an earlier claim. */
  isCurrent(run: JobRun): boolean {
    const { id } = run.job;
    const isLater = (other: JobRun): boolean =>
      other.job.id === id && other !== run && other.startedAt >= run.startedAt;
    return !this.#runs().some(isLater) && !this.#buffer.jobs().some((job) => job.id === id);
  }

  /** How often jobs that could have started were returned. What was claimed before that and arrives after it would overtake them. */
  get returns(): number {
    return this.#returns;
  }

  room(): Room | null {
    if (this.#isClosed || this.#options.unsettled() >= maxUnsettled) return null;
    const { localQueue, slots } = this.#options;
    if (this.#options.isAlone) return this.isQuiet ? { jobs: 1, idle: 1, perQueue: 1 } : null;
    // Jobs that wait for their queue leave slots idle, however many they are.
    const free = this.#free.length - this.#timed.size;
    const idle = free - this.#buffer.ready;
    if (localQueue) {
      const jobs = Math.max(idle, localQueue.size - this.#buffer.size);
      return idle > 0 && this.#buffer.ready === 0 ? { jobs, idle, perQueue: jobs } : null;
    }
    const now = monotonicMs();
    const ahead = this.#options.mayHoldAhead ? this.#pace.ahead(slots.length, now) : 0;
    const jobs = Math.max(idle, free + ahead - this.#buffer.size);
    // A claim for the buffer alone should be worth a statement.
    if (jobs <= 0 || (idle <= 0 && jobs < ahead / 2)) return null;
    // The jobs of a queue run one after the other in one slot.
    return { jobs, idle: Math.max(0, idle), perQueue: ahead > 0 ? this.#pace.inARow(now) : 1 };
  }

  accept(claimed: readonly Job[], bytes: number): void {
    this.#pace.observeClaim(claimed.length, bytes);
    const jobs = this.#options.overruns.size > 0 ? this.#withoutOverrunning(claimed) : claimed;
    if (jobs.length === 0) return;
    const claimedAt = monotonicMs();
    for (const job of jobs) this.#hold(job, claimedAt);
    this.returnPaused();
    // Let the next claim go out first, so that the database works while we do.
    if (this.#buffer.ready > this.#free.length) setImmediate(() => this.#fill());
    else this.#fill();
    this.#holdWatch.watch();
  }

  /** Returns what is held and was paused meanwhile. */
  returnPaused(): void {
    const { pauses, onHeldTooLong } = this.#options;
    if (!pauses.isActive || this.waiting === 0) return;
    const isPaused = (job: Job): boolean => pauses.isPaused(job);
    onHeldTooLong(join(this.#timed.takeWhere(isPaused), this.#buffer.takeWhere(isPaused)));
  }

  #hold(job: Job, claimedAt: number): void {
    const start = this.#startById.size > 0 ? this.#startById.get(job.id) : undefined;
    if (!start) {
      this.#buffer.add(job, claimedAt);
      return;
    }
    this.#startById.delete(job.id);
    this.#timed.add(job, start);
  }

  /** Fewer ends wait to be written, so more jobs may start. */
  goOn(): void {
    this.#fill();
  }

  /** Starts no further job, and hands out what was not started. */
  close(): Unstarted {
    this.#isClosed = true;
    this.#holdWatch.close();
    this.#timed.close();
    this.#cancelledById.clear();
    return this.takeUnstarted();
  }

  /** Takes a released slot out of service. */
  retire(slot: Slot): void {
    const index = this.#free.indexOf(slot);
    if (index >= 0) this.#free.splice(index, 1);
  }

  /** Takes a new slot into service. */
  employ(slot: Slot): void {
    this.#free.push(slot);
    this.#options.onRoom();
  }

  /** Forgets a running job that was returned or failed from outside. Returns its queue, if that must be released. */
  abandon(job: Job): number | null {
    const run = this.#runs().find((each) => each.job === job);
    if (run) run.isAbandoned = true;
    return this.#buffer.ended(job);
  }

  /** Fails a running job from outside; resolves to whether it was no longer ours, or could not be written. */
  fail(job: Job, error: Error): Promise<boolean> {
    const queueId = this.abandon(job);
    return new Promise((resolve) => {
      this.#options.settle(new EndedJob(failed(job, error), null, 0, queueId, resolve));
    });
  }

  #fill(): void {
    if (this.#timed.size > 0) this.#startTimed();
    while (this.#buffer.ready > 0 && this.#mayStart) {
      this.#start(this.#free.pop()!, this.#buffer.take()!);
      if (this.#buffer.size === 0) this.#options.onDrained();
    }
  }

  get #mayStart(): boolean {
    const { unsettled, mayStart } = this.#options;
    return this.#free.length > 0 && !this.#isClosed && unsettled() < maxUnsettled && mayStart() && this.#turn.mayGoOn();
  }

  /** Before others: their tokens are good for a moment only. Those that have missed it go back in line. */
  #startTimed(): void {
    const missed = this.#timed.takeMissed();
    if (missed.jobs.length > 0) {
      this.#options.onHeldTooLong(missed);
      this.#options.onRoom();
    }
    while (this.#mayStart) {
      const job = this.#timed.take();
      if (!job) break;
      this.#start(this.#free.pop()!, job);
    }
    this.#timed.watch(this.#free.length > 0);
  }

  #start(slot: Slot, job: Job): void {
    const { emit, tasks, taskOptions, makeHelpers, stopSwitch, completions, runInTransaction } = this.#options;
    const task = refusalOf(job) ?? (tasks[job.task_identifier] as Task);
    const startedAt = monotonicMs();
    const run = new JobRun(job, slot, taskOptions(job.task_identifier, task), stopSwitch(), startedAt);
    slot.occupy(run);
    this.#running++;
    this.#holdWatch.started(startedAt);
    if (run.options?.timeout !== undefined) this.#deadlines.watch(run);
    if (this.#cancelledById.size > 0 && this.#isCancelled(run)) {
      queueMicrotask(() => this.#ended(slot, run, failed(job, run.cancelled), 0));
      return;
    }
    const begin = (): Promise<RunOutcome> => {
      if (emit.heard("job:start")) emit("job:start", { worker: slot, job });
      const helpers = makeHelpers(run, completions);
      if (run.options?.transactional) return runInTransaction(run, task, helpers);
      return runTask(job, task, helpers, run.options?.keepResult);
    };
    const around = this.#options.aroundRun?.();
    const end = around ? around(job, begin, () => run.isAbandoned) : begin();
    void end.then((outcome) => {
      const durationMs = monotonicMs() - startedAt;
      run.isOver = true;
      if (run.completion) void this.#endCompleted(slot, run, outcome, durationMs);
      else this.#ended(slot, run, outcome, durationMs);
    });
  }

  #isCancelled(run: JobRun): boolean {
    run.cancelled = this.#cancelledById.get(run.job.id);
    return run.cancelled !== undefined && this.#cancelledById.delete(run.job.id);
  }

  /** A job that was completed in a transaction has succeeded if that was committed, and only then, whatever its task did after it. */
  async #endCompleted(slot: Slot, run: JobRun, ended: RunOutcome, durationMs: number): Promise<void> {
    const { job, completion } = run;
    await completion!.underWay;
    if (await this.#isCommitted(run)) {
      if (ended.kind === "failed") this.#options.onThrownAfterCommit(job, ended.error);
      this.#ended(slot, run, { kind: "succeeded", job }, durationMs, "written");
      return;
    }
    const outcome = ended.kind === "failed" ? ended : failed(job, new Error(notCommitted));
    this.#ended(slot, run, outcome, durationMs, run.isLost ? "lost" : undefined);
  }

  #isCommitted(run: JobRun): Promise<boolean> {
    // The pool has given up on the database, and says so when it cannot write the failure either.
    return this.#options.completions.isCommitted(run).catch(() => false);
  }

  #ended(slot: Slot, run: JobRun, outcome: RunOutcome, durationMs: number, known?: EndedJob["known"]): void {
    const { overruns, settle, onBadBackoff } = this.#options;
    this.#running--;
    this.#pace.observeJob(durationMs);
    let isSlotNeeded = true;
    if (run.isOverrunning) isSlotNeeded = !overruns.returned(run, this.#buffer.ended(run.job));
    else if (!run.isAbandoned || known === "written") {
      const queueId = run.isAbandoned ? null : this.#buffer.ended(run.job);
      settle(new EndedJob(decide(run, outcome, onBadBackoff), slot, durationMs, queueId, undefined, known));
    }
    if (!slot.isReleased && isSlotNeeded) this.#free.push(slot);
    slot.vacate();
    this.#fill();
    this.#options.onRoom();
  }

  #overrun(run: JobRun, error: TimeoutError): void {
    if (run.completion?.transaction === undefined) this.#overrunAs(run, error);
    else void this.#overrunCompleted(run, error);
  }

  /** A transaction that is open has its own time limit, and what becomes of it counts. */
  async #overrunCompleted(run: JobRun, error: TimeoutError): Promise<void> {
    const known = (await this.#isCommitted(run)) ? "written" : undefined;
    if (!run.isOver && !run.isAbandoned) this.#overrunAs(run, error, known);
  }

  /** The attempt has ended, but its task goes on: its slot and its queue stay taken. */
  #overrunAs(run: JobRun, error: TimeoutError, known?: "written"): void {
    const { overruns, settle, onBadBackoff } = this.#options;
    run.isAbandoned = true;
    run.isOverrunning = true;
    const onWritten = overruns.begin(run, error);
    const ended: RunOutcome = known ? { kind: "succeeded", job: run.job } : failed(run.job, error);
    const outcome = decide(run, ended, onBadBackoff);
    settle(new EndedJob(outcome, run.worker, monotonicMs() - run.startedAt, null, onWritten, known));
  }

  #withoutOverrunning(claimed: readonly Job[]): readonly Job[] {
    const { overruns, onOverrunning } = this.#options;
    const overrunning = claimed.filter(({ id }) => overruns.has(id));
    if (overrunning.length === 0) return claimed;
    onOverrunning(overrunning);
    return claimed.filter((job) => !overrunning.includes(job));
  }

  #notStarted(): Job[] {
    return [...this.unstarted(), ...this.#options.reading()];
  }

  #runs(): JobRun[] {
    const runs: JobRun[] = [];
    for (const { run } of this.#options.slots) if (run) runs.push(run);
    return runs;
  }

  #returnOverdue(before: { readonly ready: number; readonly waiting: number }): void {
    if (this.#buffer.readySince <= before.ready) {
      this.#options.onExpired();
      this.#returnAll();
      return;
    }
    // What waits for its queue waits for a job that takes long.
    this.#pace.observeSlowQueue(monotonicMs());
    this.#options.onHeldTooLong(this.#buffer.takeClaimedBefore(before));
  }

  /** All of it, even if only the oldest was held for too long: the others would overtake those. */
  #returnAll(): void {
    this.#returns++;
    this.#options.onHeldTooLong(this.takeUnstarted());
  }
}

function join(some: Unstarted, others: Unstarted): Unstarted {
  if (some.jobs.length === 0) return others;
  return { jobs: [...some.jobs, ...others.jobs], queueIds: [...some.queueIds, ...others.queueIds] };
}
