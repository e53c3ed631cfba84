import { errorTitle } from "../error-text.ts";
import type { Job } from "../job.ts";
import { JobCancelledError } from "../job-errors.ts";
import type { WorkerPool } from "../worker.ts";
import { Intake } from "./claim/intake.ts";
import { LocalQueueView } from "./claim/local-queue.ts";
import { PauseGate } from "./claim/pause-gate.ts";
import type { Identity } from "./identity.ts";
import type { PoolOptions } from "./pool-options.ts";
import { CancelWatch } from "./run/cancel-watch.ts";
import { Completions } from "./run/completions.ts";
import { Dispatcher } from "./run/dispatcher.ts";
import { dueAgainMs } from "./run/outcome.ts";
import { Overruns } from "./run/overruns.ts";
import type { Slot } from "./run/slot.ts";
import { runInTransaction } from "./run/transactional.ts";
import { LockKeeper } from "./settle/lock-keeper.ts";
import { Outage } from "./settle/outage.ts";
import { PlaceNotices } from "./settle/place-notices.ts";
import { QueueNotices } from "./settle/queue-notices.ts";
import { Strays } from "./settle/strays.ts";
import { WriteBack } from "./settle/write-back.ts";

export interface FlowOptions extends PoolOptions {
  readonly workerPool: WorkerPool;
  readonly identity: Identity;
  readonly slots: readonly Slot[];
  /** Makes a slot, or takes one out, while the pool runs. */
  readonly addSlot: () => Slot;
  readonly dropSlot: (slot: Slot) => void;
}

/** However seldom a pool polls for jobs, a cancel must not wait for longer than this. */
const maxCancelPollMs = 10_000;

/** The parts of a pool, connected. Jobs pass from the intake through the dispatcher and its slots to the write-back. */
export class Flow {
  readonly intake: Intake;
  readonly dispatcher: Dispatcher;
  readonly slots: readonly Slot[];
  readonly writeBack: WriteBack;

  readonly identity: Identity;
  /** Only if its options ask for it. */
  readonly localQueue: LocalQueueView | undefined;
  readonly queueNotices: QueueNotices | undefined;
  readonly placeNotices: PlaceNotices;
  readonly pauses: PauseGate;
  readonly keeper: LockKeeper;
  readonly overruns: Overruns;
  readonly completions: Completions;
  /** Not on a client that is not ours alone. */
  readonly cancels: CancelWatch | undefined;

  constructor(options: FlowOptions) {
    const { database, settings, emit, logger, identity, slots, workerPool } = options;
    this.slots = slots;
    this.identity = identity;
    this.localQueue = settings.localQueue.size >= 1 ? new LocalQueueView(settings.localQueue, emit) : undefined;
    // On a client that is not ours alone, the fewer statements the better.
    this.queueNotices = options.ownsTransactions ? new QueueNotices(database, settings.useNodeTime) : undefined;

    this.placeNotices = new PlaceNotices(database, settings.useNodeTime, () => this.intake.hasPlentyOfPlaces);

    const strays = new Strays({
      database,
      poolId: () => identity.id,
      held: () => this.#held(),
      onSearch: () => this.writeBack.searching(),
    });
    const outage = new Outage(options.outages, logger, (error) => strays.suspect(error), options.mayBeIdle);
    this.writeBack = new WriteBack({
      ...settings,
      database,
      workerPool,
      emit,
      logger,
      outage,
      strays,
      keepRules: options.keepRules,
      lend: (ended) => this.intake.freedPlaces.lend(ended),
      onFlushed: () => {
        // What could not be written is off the books, too, but starts nothing.
        if (!this.writeBack.fatal) this.dispatcher.goOn();
      },
      onSettled: (outcome) => {
        this.intake.freedPlaces.freedBy(outcome.job);
        if (outcome.kind === "snoozed" && outcome.holds) this.intake.limitsChanged(outcome.job.task_id);
        const dueMs = dueAgainMs(outcome);
        if (dueMs !== undefined) this.intake.expect(dueMs);
        this.intake.wake();
      },
      onReturned: (jobs, queueIds) => {
        if (jobs.length > 0) this.localQueue?.returned(jobs);
        for (const job of jobs) this.intake.freedPlaces.freedBy(job);
        for (const queueId of queueIds) this.intake.queueReleased(queueId);
        this.intake.startOver();
      },
      onReleased: (queueId) => {
        this.intake.queueReleased(queueId);
        this.queueNotices?.released(queueId);
      },
    });
    const workerNames = (): readonly string[] => [...identity.ids, ...(options.workerId ? [options.workerId] : [])];
    this.pauses = new PauseGate({
      database,
      workerPool,
      workerNames,
      useNodeTime: settings.useNodeTime,
      emit,
      mustAsk: () => this.intake.holdsUntold,
      onPaused: () => this.dispatcher.returnPaused(),
      onResumed: () => this.intake.startOver(),
      onEnd: () => (options.ownsTransactions ? this.pauses.ask() : this.intake.nudge()),
    });
    this.overruns = new Overruns({
      database,
      emit,
      addSlot: options.addSlot,
      dropSlot: options.dropSlot,
      releaseQueue: (queueId, poolId) => this.writeBack.releaseQueue(queueId, poolId),
    });
    this.completions = new Completions({
      ...options,
      persist: (ask) => this.writeBack.ask(ask),
    });
    this.dispatcher = this.#makeDispatcher(options);
    this.cancels = options.ownsTransactions ? this.#makeCancelWatch(options) : undefined;
    this.intake = new Intake({
      ...options,
      outage,
      strays,
      localQueue: this.localQueue,
      pauses: this.pauses,
      workerNames,
      dispatcher: this.dispatcher,
      queueNotices: this.queueNotices,
      placeNotices: this.placeNotices,
      writeBack: this.writeBack,
      cancels: this.cancels,
    });
    this.keeper = new LockKeeper({
      ...settings,
      database,
      emit,
      workerPool,
      running: () => [...this.dispatcher.running(), ...this.overruns.jobs()],
    });
  }

  #makeDispatcher({ slots, tasks, emit, makeHelpers, settings, ...options }: FlowOptions): Dispatcher {
    const { completions } = this;
    const isAlone = !options.ownsTransactions;
    return new Dispatcher({
      slots,
      tasks,
      emit,
      makeHelpers,
      aroundRun: options.interceptors?.aroundRun,
      settler: this.writeBack.settler,
      unwritten: this.writeBack.unwritten,
      localQueue: this.localQueue && settings.localQueue,
      isAlone,
      mayHoldAhead: options.mayHoldAhead,
      stopSwitch: () => this.identity.stopSwitch,
      pauses: this.pauses,
      reading: () => this.intake.reading(),
      mayStart: () => options.lifeline?.mayWork !== false,
      taskOptions: options.taskOptions,
      overruns: this.overruns,
      completions,
      runInTransaction: (run, helpers) => runInTransaction(run, helpers, { ...options, completions, isAlone }),
      onThrownAfterCommit: ({ id, task_identifier }, error) =>
        options.logger.warn(
          `Task '${task_identifier}' threw after the transaction that completed its job ${id} was committed. The job is done: ${errorTitle(error)}`,
          { error },
        ),
      onReturned: ({ job_queue_id, locked_by }) => {
        const { id } = this.identity;
        // It has outlived the id of its pool, and may have kept jobs of its queue waiting that were claimed under the new one.
        if (job_queue_id !== null && locked_by !== id) this.writeBack.releaseQueue(job_queue_id, id);
      },
      onBadBackoff: (error) => options.logger.error(`The usual back-off is used: ${errorTitle(error)}`, { error }),
      onRoom: () => this.intake.noticeRoom(),
      onDrained: () => this.localQueue?.drained(),
      onHeldTooLong: (unstarted) => this.writeBack.returnUnstarted(unstarted),
      onExpired: () => this.localQueue?.expire(),
    });
  }

  #makeCancelWatch({ database, settings, lifeline }: FlowOptions): CancelWatch {
    return new CancelWatch({
      database,
      pollMs: Math.min(settings.pollInterval, maxCancelPollMs),
      isTold: () => this.intake.isTold,
      held: () => this.dispatcher.cancellable(),
      onCancelled: ({ job_id, reason, cancelled_by }) =>
        this.dispatcher.cancel(job_id, new JobCancelledError(reason, cancelled_by)),
      poolId: () => this.identity.id,
      running: () => this.dispatcher.running(),
      // While a heartbeat is overdue we may have been taken for dead, which is a better reason; it is known soon.
      onLost: (job) => {
        if (lifeline?.mayWork !== false) this.dispatcher.lose(job);
      },
    });
  }

  /** Every job that the database has locked for us, as far as we know. */
  #held(): Job[] {
    const running = this.slots.map((slot) => slot.getActiveJob()).filter((job) => job !== null);
    return [...running, ...this.intake.reading(), ...this.dispatcher.unstarted(), ...this.writeBack.jobs()];
  }
}
