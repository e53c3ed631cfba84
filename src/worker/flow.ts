import type { Job } from "../job.ts";
import type { WorkerPool } from "../worker.ts";
import { Dispatcher } from "./dispatcher.ts";
import { HandOver } from "./hand-over.ts";
import type { Identity } from "./identity.ts";
import { Intake } from "./intake.ts";
import { LocalQueueView } from "./local-queue.ts";
import { LockKeeper } from "./lock-keeper.ts";
import { Outage } from "./outage.ts";
import type { Outcome } from "./outcome.ts";
import type { PoolOptions } from "./pool-options.ts";
import { retryDelayMs } from "./settler.ts";
import type { Slot } from "./slot.ts";
import { Strays } from "./strays.ts";
import { WriteBack } from "./write-back.ts";

export interface FlowOptions extends PoolOptions {
  readonly workerPool: WorkerPool;
  readonly identity: Identity;
  readonly slots: readonly Slot[];
}

/** The parts of a pool, connected. Jobs pass from the intake through the dispatcher and its slots to the write-back. */
export class Flow {
  readonly intake: Intake;
  readonly dispatcher: Dispatcher;
  readonly slots: readonly Slot[];
  readonly writeBack: WriteBack;

  readonly identity: Identity;
  /** Only if its options ask for it. */
  readonly localQueue: LocalQueueView | undefined;
  readonly handOver: HandOver | undefined;
  readonly keeper: LockKeeper;

  constructor(options: FlowOptions) {
    const { database, settings, emit, logger, identity, slots, workerPool } = options;
    this.slots = slots;
    this.identity = identity;
    this.localQueue = settings.localQueue.size > 0 ? new LocalQueueView(settings.localQueue, emit) : undefined;
    // On a client that is not ours alone, the fewer statements the better.
    this.handOver = options.ownsTransactions ? new HandOver(database, settings.useNodeTime) : undefined;

    const strays = new Strays({ database, poolId: () => identity.id, held: () => this.#held() });
    const outage = new Outage(logger, (error) => strays.suspect(error));
    this.writeBack = new WriteBack({
      ...settings,
      database,
      workerPool,
      emit,
      logger,
      outage,
      strays,
      handOver: this.handOver,
      onFlushed: () => {
        // What could not be written is off the books, too, but starts nothing.
        if (!this.writeBack.fatal) this.dispatcher.goOn();
      },
      onReturned: (jobs) => {
        this.localQueue?.returned(jobs);
        this.intake.startOver();
      },
    });
    this.dispatcher = this.#makeDispatcher(options);
    this.intake = new Intake({
      ...options,
      outage,
      strays,
      localQueue: this.localQueue,
      dispatcher: this.dispatcher,
      handOver: this.handOver,
      writeBack: this.writeBack,
    });
    this.keeper = new LockKeeper({
      ...settings,
      database,
      emit,
      workerPool,
      running: () => this.dispatcher.running(),
    });
  }

  #makeDispatcher({ slots, tasks, emit, makeHelpers, settings, ...options }: FlowOptions): Dispatcher {
    return new Dispatcher({
      slots,
      tasks,
      emit,
      makeHelpers,
      aroundRun: options.interceptors?.aroundRun,
      completing: this.writeBack.completing,
      failing: this.writeBack.failing,
      localQueue: this.localQueue && settings.localQueue,
      isAlone: !options.ownsTransactions,
      mayHoldAhead: options.mayHoldAhead,
      stopSwitch: () => this.identity.stopSwitch,
      onRoom: () => this.intake.noticeRoom(),
      onSettled: (outcome, hasReleasedQueue) => this.#onSettled(outcome, hasReleasedQueue),
      onDrained: () => this.localQueue?.drained(),
      onStall: () => {
        this.localQueue?.expire();
        this.writeBack.giveBack(this.dispatcher.buffer.drain());
      },
    });
  }

  #onSettled({ kind, job }: Outcome, hasReleasedQueue: boolean): void {
    if (kind === "failed") this.intake.expect(retryDelayMs(job));
    if (hasReleasedQueue) {
      this.intake.nudge();
      this.handOver?.released(job.job_queue_id!);
    } else {
      this.intake.wake();
    }
  }

  /** Every job that the database has locked for us, as far as we know. */
  #held(): Job[] {
    const running = this.slots.map((slot) => slot.getActiveJob()).filter((job) => job !== null);
    return [...running, ...this.dispatcher.buffer.jobs(), ...this.writeBack.jobs()];
  }
}
