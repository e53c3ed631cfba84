import type { Listener } from "../db/listener.ts";
import type { Job } from "../job.ts";
import { deferred } from "../util/deferred.ts";
import type { Worker, WorkerPool } from "../worker.ts";
import { Claimer } from "./claimer.ts";
import type { Dispatcher } from "./dispatcher.ts";
import type { HandOver } from "./hand-over.ts";
import { deafPollMs, hearJobs } from "./hear-jobs.ts";
import type { LocalQueueView } from "./local-queue.ts";
import type { Outage } from "./outage.ts";
import type { PoolOptions } from "./pool-options.ts";
import type { Slot } from "./slot.ts";
import type { Strays } from "./strays.ts";
import { KnownTasks } from "./task-ids.ts";
import type { WriteBack } from "./write-back.ts";

export interface IntakeOptions extends PoolOptions {
  readonly workerPool: WorkerPool;
  readonly slots: readonly Slot[];
  readonly outage: Outage;
  readonly strays: Strays;
  readonly localQueue: LocalQueueView | undefined;
  readonly dispatcher: Dispatcher;
  readonly handOver: HandOver | undefined;
  readonly writeBack: WriteBack;
}

/** Brings jobs in: listens for them, claims them for this pool's tasks, and hands them to the dispatcher until it is closed. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #tasks: KnownTasks;
  readonly #claimer: Claimer;
  readonly #listener: Listener | undefined;
  readonly #stop = new AbortController();
  readonly #firstLook = deferred();
  #claiming: Promise<void> = Promise.resolve();
  #firstFlags: Promise<string[] | null> | undefined;
  #isDeaf = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#tasks = new KnownTasks(options);
    this.#claimer = this.#makeClaimer();
    this.#listener = this.#makeListener();
  }

  get isOpen(): boolean {
    return !this.#stop.signal.aborted;
  }

  /** Plugins were told that the workers start, which happens with the first claim. */
  get hasStartedWorkers(): boolean {
    return this.#firstFlags !== undefined;
  }

  start(): void {
    this.#listener?.start();
    this.#claiming = this.#claimer.run(this.#stop.signal);
  }

  /** Instead of `start`: resolves when there is nothing more to do, rejects when that cannot be found out. */
  runUntilEmpty(): Promise<void> {
    this.#claiming = this.#claimer.runUntilEmpty(this.#stop.signal, () => this.#isQuiet);
    return this.#claiming;
  }

  /** There may be jobs now. */
  nudge(): void {
    this.#claimer.nudge();
  }

  /** Jobs that we held are in line again. */
  startOver(): void {
    this.#claimer.startOver();
  }

  /** Jobs that are known of may find a place now. */
  wake(): void {
    this.#claimer.wake();
  }

  /** A slot is free. While nobody tells us of new jobs, that is a reason to look. */
  noticeRoom(): void {
    if (this.#listener?.isListening) this.#claimer.wake();
    else this.#claimer.nudge();
  }

  /** A job will be due then. */
  expect(inMs: number): void {
    this.#claimer.expect(inMs);
  }

  refreshTasks(): void {
    this.#tasks.forget();
    this.#claimer.nudge();
  }

  /** Claims no more; what a claim under way still brings is given back. */
  close(): void {
    this.#stop.abort();
  }

  /** Resolves when no claim is under way any more. */
  async ended(): Promise<void> {
    await this.#claiming.catch(() => undefined);
  }

  async stopListening(): Promise<void> {
    await this.#listener?.stop();
  }

  get #isQuiet(): boolean {
    return this.#options.dispatcher.isQuiet && !this.#options.writeBack.isReturning;
  }

  #makeClaimer(): Claimer {
    const { database, emit, settings, outage, strays, localQueue, dispatcher, workerPool } = this.#options;
    return new Claimer({
      database,
      outage,
      strays,
      poolId: () => workerPool.id,
      tasks: () => this.#tasks.ids(),
      room: () => (localQueue?.isResting ? null : dispatcher.room()),
      forbiddenFlags: () => this.#flagsToSkip(),
      acceptedFlags: settings.acceptedFlags ?? null,
      useNodeTime: settings.useNodeTime,
      relaxed: this.#options.ownsTransactions,
      pollInterval: () => (this.#isDeaf ? Math.min(deafPollMs, settings.pollInterval) : settings.pollInterval),
      onClaiming: () => {
        localQueue?.polling();
        this.#forFreeSlots((worker) => emit("worker:getJob:start", { worker }));
      },
      onClaimed: (jobs, wanted, bytes) => {
        this.#firstLook.resolve();
        this.#handOn(jobs, wanted, bytes);
      },
      onError: (error) => {
        this.#firstLook.resolve();
        this.#forFreeSlots((worker) => emit("worker:getJob:error", { worker, error }));
      },
    });
  }

  #makeListener(): Listener | undefined {
    const { listenOn } = this.#options;
    if (!listenOn) return undefined;
    return hearJobs({
      ...this.#options,
      ...listenOn,
      // Jobs that are there already need not wait until another connection is made.
      after: this.#firstLook.promise,
      onListening: () => this.#claimer.nudge(),
      onDeaf: () => {
        this.#isDeaf = true;
        this.#claimer.nudge();
      },
    });
  }

  #handOn(jobs: readonly Job[], wanted: number, bytes: number): void {
    const { emit, interceptors, localQueue, dispatcher, handOver, writeBack, workerPool } = this.#options;
    handOver?.claimed(jobs);
    localQueue?.claimed(jobs, wanted, () => this.#claimer.wake());
    if (jobs[0] && jobs[0].locked_by !== workerPool.id) {
      // Claimed under an id that was taken for dead meanwhile.
      writeBack.giveBack({ jobs, queueIds: queuesOf(jobs) });
      return;
    }
    if (!this.isOpen) {
      for (const job of jobs) dispatcher.buffer.add(job);
      writeBack.giveBack(dispatcher.buffer.drain());
      return;
    }
    interceptors?.onClaimed?.(jobs);
    dispatcher.accept(jobs, bytes);
    if (dispatcher.buffer.size > 0) localQueue?.holding();
    if (jobs.length < wanted) this.#forFreeSlots((worker) => emit("worker:getJob:empty", { worker }));
  }

  /** A claim is made for the whole pool; whoever listens hears of it from each slot that could take a job. */
  #forFreeSlots(say: (worker: Worker) => void): void {
    const { emit, dispatcher } = this.#options;
    if (emit.heard("worker:getJob:start") || emit.heard("worker:getJob:empty") || emit.heard("worker:getJob:error")) {
      for (const slot of dispatcher.freeSlots.toReversed()) say(slot);
    }
  }

  async #flagsToSkip(): Promise<readonly string[] | null> {
    const flags = await this.#options.forbiddenFlags();
    if (this.#firstFlags) return flags;
    this.#firstFlags = this.#startWorkers(flags ? [...flags] : null);
    return this.#firstFlags;
  }

  async #startWorkers(flags: string[] | null): Promise<string[] | null> {
    const { hooks, slots } = this.#options;
    let flagsToSkip = flags;
    for (const worker of slots) flagsToSkip = await hooks.onWorkerStart(worker, flagsToSkip);
    return flagsToSkip;
  }
}

function queuesOf(jobs: readonly Job[]): number[] {
  return [...new Set(jobs.map(({ job_queue_id }) => job_queue_id).filter((id) => id !== null))];
}
