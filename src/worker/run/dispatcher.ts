import type { Job } from "../../job.ts";
import { type JobCancelledError, JobLostError } from "../../job-errors.ts";
import { monotonicMs, queueMicrotask, setImmediate } from "../../util/timers.ts";
import type { Unstarted } from "../claim/buffer.ts";
import type { Room } from "../claim/claim-request.ts";
import type { Lateness } from "../claim/lateness.ts";
import { Pace } from "../claim/pace.ts";
import type { Unwritten } from "../settle/unwritten.ts";
import type { StopSwitch } from "../stop/stop-switch.ts";
import { Cancels } from "./cancels.ts";
import { Deadlines } from "./deadlines.ts";
import { Ends, type EndsOptions, type RunEnd } from "./ends.ts";
import { HeldJobs } from "./held-jobs.ts";
import type { JobRun } from "./job-run.ts";
import { JobRuns, type JobRunsOptions } from "./job-runs.ts";
import { LoopTurn } from "./loop-turn.ts";
import { failed, type RunOutcome } from "./outcome.ts";
import { measureRoom } from "./room.ts";
import { RunningJobs } from "./running-jobs.ts";
import type { Slot } from "./slot.ts";
import type { JobStart } from "./timed-starts.ts";

/** Finished jobs that the database does not know of yet: beyond this no more are started. */
const maxUnwritten = 4_000;

export interface DispatcherOptions extends JobRunsOptions, Omit<EndsOptions, "held"> {
  readonly slots: readonly Slot[];
  readonly unwritten: Pick<Unwritten, "pending">;
  /** A fixed number of jobs to hold, given by the user, and how long; without it the pool judges by itself. */
  readonly localQueue: { readonly size: number; readonly ttl: number } | undefined;
  /** False if what may run can change from one job to the next. */
  readonly mayHoldAhead: boolean;
  /** Jobs share our only connection: nothing of ours may come between the statements of a job, which may be a transaction. */
  readonly isAlone: boolean;
  readonly pauses: { readonly isActive: boolean; isPaused(job: Job): boolean };
  /** Claimed jobs that will be accepted when their payload is read. */
  readonly reading: () => readonly Job[];
  /** False while others may take our jobs, or have done so. */
  readonly mayStart: () => boolean;
  /** The task of a job has returned, whatever became of the job before that. */
  readonly onReturned: (job: Job) => void;
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
  readonly #options: DispatcherOptions;
  readonly #free: Slot[];
  readonly #pace = new Pace();
  readonly #held: HeldJobs;
  readonly #runs: JobRuns;
  readonly #running: RunningJobs;
  readonly #cancels: Cancels;
  readonly #ends: Ends;
  readonly #deadlines: Deadlines;
  readonly #turn = new LoopTurn(() => this.#fill());
  #occupied = 0;
  #isClosed = false;

  constructor(options: DispatcherOptions) {
    const { emit, slots, localQueue, onHeldTooLong, onExpired } = options;
    this.#options = options;
    this.#free = slots.toReversed();
    this.#runs = new JobRuns(options);
    this.#running = new RunningJobs(slots);
    this.#held = new HeldJobs({
      pace: this.#pace,
      hasFreeSlot: () => this.#free.length > 0,
      ttlMs: localQueue?.ttl,
      onTime: () => this.#fill(),
      onReturn: onHeldTooLong,
      onExpired,
    });
    this.#cancels = new Cancels({
      emit,
      running: this.#running,
      notStarted: () => [...this.#held.jobs(), ...options.reading()],
    });
    this.#ends = new Ends({ ...options, held: this.#held });
    this.#deadlines = new Deadlines({
      runs: () => this.#running.runs(),
      onTimeout: ({ worker, job }, { timeoutMs }) => emit("job:timeout", { worker, job, timeoutMs }),
      onOverrun: (run, error) => this.#ends.overran(run, error),
    });
  }

  /** Nothing is held, running or waiting to be written. */
  get isQuiet(): boolean {
    return this.#occupied === 0 && this.#held.size === 0 && this.#options.unwritten.pending === 0;
  }

  get freeSlots(): readonly Slot[] {
    return this.#free;
  }

  /** How many claimed jobs are not started. */
  get waiting(): number {
    return this.#held.size;
  }

  /** How many of those wait for their moment. */
  get timed(): number {
    return this.#held.timed;
  }

  /** So many of those need only slots that more would miss their moment. */
  get isCrowded(): boolean {
    return this.#held.isCrowded;
  }

  /** How often jobs that could have started were returned. */
  get returns(): number {
    return this.#held.returns;
  }

  /** How much more time the starts of tasks need than their rates allow. */
  get lateness(): Lateness {
    return this.#held.lateness;
  }

  /** Claimed jobs that are not started. */
  unstarted(): Job[] {
    return this.#held.jobs();
  }

  /** Hands out what was not started. */
  takeUnstarted(): Unstarted {
    return this.#held.takeAll();
  }

  /** Jobs that run and whose outcome is still to come. */
  running(): Job[] {
    return this.#running.jobs();
  }

  /** Jobs that are claimed and not known to be cancelled. */
  cancellable(): string[] {
    return this.#cancels.candidates();
  }

  cancel(jobId: string, error: JobCancelledError): void {
    this.#cancels.cancel(jobId, error);
  }

  /** Tells a job to stop that is no longer ours. What it reports is not written: its row may be ours again, for another run. */
  lose(job: Job): void {
    const message = `The lock of job ${job.id} was removed or given to another worker, so what this run does may be done twice.`;
    this.#running.lose(job, new JobLostError(message));
  }

  /** Tells everything that runs under this switch to stop. */
  abortAll(stopped: StopSwitch, reason: Error): void {
    this.#running.abortAll(stopped, reason);
  }

  room(): Room | null {
    const { slots, localQueue, mayHoldAhead, isAlone, unwritten } = this.#options;
    if (this.#isClosed || unwritten.pending >= maxUnwritten) return null;
    if (isAlone) return this.isQuiet ? { jobs: 1, idle: 1, perQueue: 1 } : null;
    return measureRoom({
      slots: slots.length,
      free: this.#free.length,
      held: this.#held,
      pace: this.#pace,
      localQueueSize: localQueue?.size,
      mayHoldAhead,
    });
  }

  /** When these jobs start, once each of them is accepted. */
  expect(jobs: readonly Job[], starts: ReadonlyMap<string, JobStart>): void {
    this.#held.expect(jobs, starts);
  }

  /** `starts` says when they start, where that is given. */
  accept(jobs: readonly Job[], bytes: number, starts?: ReadonlyMap<string, JobStart>): void {
    this.#pace.observeClaim(jobs.length, bytes);
    if (jobs.length === 0) return;
    this.#held.add(jobs, starts);
    this.returnPaused();
    // Let the next claim go out first, so that the database works while we do.
    if (this.#held.ready + this.#held.timed > this.#free.length) setImmediate(() => this.#fill());
    else this.#fill();
    this.#held.watch();
  }

  /** Returns what is held and was paused meanwhile. */
  returnPaused(): void {
    const { pauses } = this.#options;
    if (pauses.isActive && this.#held.size > 0) this.#held.returnWhere((job) => pauses.isPaused(job));
  }

  /** Returns what is held of tasks whose limits have changed. */
  returnHeld(isMeant: (job: Job) => boolean): void {
    if (this.#held.size > 0) this.#held.returnWhere(isMeant);
  }

  /** Fewer ends wait to be written, so more jobs may start. */
  goOn(): void {
    this.#fill();
  }

  /** Starts no further job, and hands out what was not started. */
  close(): Unstarted {
    this.#isClosed = true;
    this.#held.close();
    this.#cancels.clear();
    return this.#held.takeAll();
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
    this.#running.abandon(job);
    return this.#held.ended(job);
  }

  /** Fails a running job from outside; resolves to whether it was no longer ours, or could not be written. */
  fail(job: Job, error: Error): Promise<boolean> {
    return this.#ends.fail(job, error, this.abandon(job));
  }

  get #mayStart(): boolean {
    const { unwritten, mayStart } = this.#options;
    return (
      this.#free.length > 0 && !this.#isClosed && unwritten.pending < maxUnwritten && mayStart() && this.#turn.mayGoOn()
    );
  }

  #fill(): void {
    if (this.#held.timed > 0) this.#startTimed();
    while (this.#held.ready > 0 && this.#mayStart) {
      this.#start(this.#free.pop()!, this.#held.takeReady()!);
      if (this.#held.buffered === 0) this.#options.onDrained();
    }
  }

  /** Before others: their tokens are good for a moment only. Those that have missed it go back in line. */
  #startTimed(): void {
    if (this.#held.returnMissed()) this.#options.onRoom();
    while (this.#mayStart) {
      const job = this.#held.takeTimed();
      if (!job) break;
      this.#start(this.#free.pop()!, job);
    }
    this.#held.awaitMoment();
  }

  #start(slot: Slot, job: Job): void {
    const startedAt = monotonicMs();
    const run = this.#runs.make(job, slot, startedAt);
    slot.occupy(run);
    this.#occupied++;
    this.#held.started(startedAt);
    if (run.options?.timeout !== undefined) this.#deadlines.watch(run);
    if (this.#cancels.stops(run)) {
      queueMicrotask(() => this.#ended(slot, run, 0, failed(job, run.cancelled)));
      return;
    }
    const turn = this.#turn.nth;
    void this.#runs.begin(run).then((outcome) => {
      const durationMs = monotonicMs() - startedAt;
      this.#pace.observeJob(durationMs, this.#turn.nth !== turn);
      run.isOver = true;
      if (run.completion) void this.#endCompleted(slot, run, durationMs, outcome);
      else this.#ended(slot, run, durationMs, outcome);
    });
  }

  async #endCompleted(slot: Slot, run: JobRun, durationMs: number, ended: RunOutcome): Promise<void> {
    const { outcome, known } = await this.#ends.ofCompleted(run, ended);
    this.#ended(slot, run, durationMs, outcome, known);
  }

  #ended(slot: Slot, run: JobRun, durationMs: number, outcome: RunOutcome, known?: RunEnd["known"]): void {
    this.#occupied--;
    const isSlotNeeded = this.#ends.ended(run, outcome, durationMs, known);
    if (!slot.isReleased && isSlotNeeded) this.#free.push(slot);
    slot.vacate();
    this.#options.onReturned(run.job);
    this.#fill();
    this.#options.onRoom();
  }
}
