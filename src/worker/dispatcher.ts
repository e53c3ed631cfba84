import type { Emit } from "../events.ts";
import type { Job } from "../job.ts";
import type { Task, TaskList } from "../task.ts";
import type { Worker } from "../worker.ts";
import { Buffer } from "./buffer.ts";
import type { Room } from "./claimer.ts";
import type { MakeHelpers } from "./helpers.ts";
import type { PoolInterceptors } from "./interceptors.ts";
import { type EndWatcher, JobEnd } from "./job-end.ts";
import { LoopTurn } from "./loop-turn.ts";
import { isLastAttempt, type Outcome } from "./outcome.ts";
import { Pace } from "./pace.ts";
import { runTask } from "./run-task.ts";
import type { SettleLane } from "./settler.ts";
import type { Slot } from "./slot.ts";
import { StallWatch } from "./stall-watch.ts";
import type { StopSwitch } from "./stop-switch.ts";

/** Finished jobs that the database does not know of yet: beyond this no more are started. */
const maxUnsettled = 4_000;

export interface DispatcherOptions {
  readonly slots: readonly Slot[];
  readonly tasks: TaskList;
  readonly emit: Emit;
  readonly makeHelpers: MakeHelpers;
  readonly aroundRun: PoolInterceptors["aroundRun"] | undefined;
  readonly completing: SettleLane<"succeeded">;
  readonly failing: SettleLane<"failed">;
  /** A fixed number of jobs to hold, given by the user, and how long; without it the pool judges by itself. */
  readonly localQueue: { readonly size: number; readonly ttl: number } | undefined;
  /** False if what may run can change from one job to the next. */
  readonly mayHoldAhead: boolean;
  /** Jobs share our only connection: nothing of ours may come between the statements of a job, which may be a transaction. */
  readonly isAlone: boolean;
  readonly stopSwitch: () => StopSwitch;
  /** There is room for more. */
  readonly onRoom: () => void;
  /** The database now knows how a job ended; its queue may have a next one, a failed one will be due later. */
  readonly onSettled: (outcome: Outcome, hasReleasedQueue: boolean) => void;
  /** Nothing is held any more. */
  readonly onDrained: () => void;
  /** Buffered jobs stand still. */
  readonly onStall: () => void;
}

/** Starts claimed jobs in free slots, in order, and sends each one's end on to be written. */
export class Dispatcher {
  readonly buffer = new Buffer();
  readonly #options: DispatcherOptions;
  readonly #free: Slot[];
  readonly #pace = new Pace();
  /** Jobs that were given away while they ran; what they still report is ignored. */
  readonly #abandoned = new WeakSet<Job>();
  #running = 0;
  #isClosed = false;
  readonly #turn = new LoopTurn(() => this.#fill());
  readonly #stallWatch: StallWatch;
  /** What becomes of an end, for all of them. */
  readonly #onEnd: EndWatcher;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { emit } = options;
    this.#stallWatch = new StallWatch(options.localQueue?.ttl, () => {
      this.#pace.observeStall(Date.now());
      options.onStall();
    });
    this.#onEnd = {
      written: ({ outcome, worker, error, durationMs, releaseQueue }, isLost) => {
        const name = isLost ? "job:lost" : "job:complete";
        if (emit.heard(name)) emit(name, { worker, job: outcome.job, error, durationMs });
        options.onSettled(outcome, releaseQueue !== null);
      },
      givenUp: ({ worker, error }, fatal) => emit("worker:fatalError", { worker, error: fatal, jobError: error }),
    };
    this.#free = options.slots.toReversed();
  }

  /** Nothing is held, running or waiting to be written. */
  get isQuiet(): boolean {
    return this.#running === 0 && this.buffer.size === 0 && this.#unsettled === 0;
  }

  get freeSlots(): readonly Slot[] {
    return this.#free;
  }

  running(): Job[] {
    return this.#options.slots
      .map((slot) => slot.getActiveJob())
      .filter((job) => job !== null && !this.#abandoned.has(job)) as Job[];
  }

  room(): Room | null {
    if (this.#isClosed || this.#unsettled >= maxUnsettled) return null;
    const { localQueue, slots } = this.#options;
    if (this.#options.isAlone) return this.isQuiet ? { jobs: 1, perQueue: 1 } : null;
    // Jobs that wait for their queue leave slots idle, however many they are.
    const idle = this.#free.length - this.buffer.ready;
    if (localQueue) {
      const jobs = Math.max(idle, localQueue.size - this.buffer.size);
      return idle > 0 && this.buffer.ready === 0 ? { jobs, perQueue: jobs } : null;
    }
    const now = Date.now();
    const ahead = this.#options.mayHoldAhead ? this.#pace.ahead(slots.length, now) : 0;
    const jobs = Math.max(idle, this.#free.length + ahead - this.buffer.size);
    // A claim for the buffer alone should be worth a statement.
    if (jobs <= 0 || (idle <= 0 && jobs < ahead / 2)) return null;
    // The jobs of a queue run one after the other in one slot.
    return { jobs, perQueue: ahead > 0 ? this.#pace.inARow(now) : 1 };
  }

  accept(jobs: readonly Job[], bytes: number): void {
    this.#pace.observeClaim(jobs.length, bytes);
    if (jobs.length === 0) return;
    this.#stallWatch.filled();
    for (const job of jobs) this.buffer.add(job);
    if (this.buffer.ready > this.#free.length) {
      // Let the next claim go out first, so that the database works while we do.
      setImmediate(() => this.#fill());
      this.#watchForStall();
    } else {
      this.#fill();
      if (this.buffer.size > 0) this.#watchForStall();
    }
  }

  /** Fewer ends wait to be written, so more jobs may start. */
  goOn(): void {
    this.#fill();
  }

  /** Starts no further job, and hands out what was not started. */
  close(): ReturnType<Buffer["drain"]> {
    this.#isClosed = true;
    this.#stallWatch.close();
    return this.buffer.drain();
  }

  /** Takes a slot that somebody released out of service. */
  retire(slot: Slot): void {
    const index = this.#free.indexOf(slot);
    if (index >= 0) this.#free.splice(index, 1);
  }

  /** Takes a new slot into service. */
  employ(slot: Slot): void {
    this.#free.push(slot);
    this.#options.onRoom();
  }

  /** Stops caring about a running job: it was given back or failed from outside. Gives its queue, if that is to be released. */
  abandon(job: Job): number | null {
    this.#abandoned.add(job);
    return this.buffer.ended(job);
  }

  get #unsettled(): number {
    return this.#options.completing.pending + this.#options.failing.pending;
  }

  #fill(): void {
    while (
      this.#free.length > 0 &&
      this.buffer.ready > 0 &&
      !this.#isClosed &&
      this.#unsettled < maxUnsettled &&
      this.#turn.mayGoOn()
    ) {
      this.#start(this.#free.pop()!, this.buffer.take()!);
      if (this.buffer.size === 0) this.#options.onDrained();
    }
  }

  #start(slot: Slot, job: Job): void {
    const { emit, tasks, makeHelpers } = this.#options;
    const task = tasks[job.task_identifier] as Task;
    const { signal, promise } = this.#options.stopSwitch();
    slot.occupy(job);
    this.#running++;
    const startedAt = performance.now();
    this.#stallWatch.moved(startedAt);
    const run = (): Promise<Outcome> => {
      if (emit.heard("job:start")) emit("job:start", { worker: slot, job });
      return runTask(job, task, makeHelpers(job, slot, signal, promise));
    };
    const around = this.#options.aroundRun?.();
    const end = around ? around(job, run, () => this.#abandoned.has(job)) : run();
    void end.then((outcome) => {
      this.#ended(slot, outcome, performance.now() - startedAt);
    });
  }

  #ended(slot: Slot, outcome: Outcome, durationMs: number): void {
    this.#running--;
    this.#pace.observeJob(durationMs);
    if (!this.#abandoned.has(outcome.job)) this.#settle(slot, outcome, durationMs);
    if (!slot.isReleased) this.#free.push(slot);
    slot.vacate();
    this.#fill();
    this.#options.onRoom();
  }

  #settle(worker: Worker, outcome: Outcome, durationMs: number): void {
    const { emit, completing, failing } = this.#options;
    const { job } = outcome;
    const releaseQueue = this.buffer.ended(job);
    if (outcome.kind === "succeeded") {
      emit("job:success", { worker, job, durationMs });
      completing.add(new JobEnd(this.#onEnd, outcome, worker, durationMs, releaseQueue));
      return;
    }
    const details = {
      worker,
      job,
      durationMs,
      error: outcome.error,
      ...(outcome.itemErrors && { batchJobErrors: outcome.itemErrors }),
    };
    emit("job:error", details);
    if (isLastAttempt(job)) emit("job:failed", details);
    failing.add(new JobEnd(this.#onEnd, outcome, worker, durationMs, releaseQueue));
  }

  #watchForStall(): void {
    this.#stallWatch.watch({
      isHolding: () => this.buffer.size > 0,
      canGoOn: () => this.#free.length > 0 && this.buffer.ready > 0,
    });
  }
}
