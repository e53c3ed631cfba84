import type { Listener } from "../../db/listener.ts";
import type { Job } from "../../job.ts";
import { deferred } from "../../util/deferred.ts";
import { monotonicMs } from "../../util/timers.ts";
import type { WorkerPool } from "../../worker.ts";
import type { PoolOptions } from "../pool-options.ts";
import type { CancelWatch } from "../run/cancel-watch.ts";
import type { Dispatcher } from "../run/dispatcher.ts";
import type { Slot } from "../run/slot.ts";
import type { Outage } from "../settle/outage.ts";
import type { PlaceNotices } from "../settle/place-notices.ts";
import type { QueueNotices } from "../settle/queue-notices.ts";
import type { Strays } from "../settle/strays.ts";
import type { WriteBack } from "../settle/write-back.ts";
import { Admission } from "./admission.ts";
import { ClaimEvents } from "./claim-events.ts";
import type { Room } from "./claim-request.ts";
import { Claimer } from "./claimer.ts";
import { Fleet, readFleetNews } from "./fleet.ts";
import { FreedPlaces } from "./freed-places.ts";
import { deafPollMs, hearJobs } from "./hear-jobs.ts";
import { KnownTasks } from "./known-tasks.ts";
import { LimitedClaims } from "./limited-claims.ts";
import type { LocalQueueView } from "./local-queue.ts";
import type { PauseGate } from "./pause-gate.ts";
import { SkippedFlags } from "./skipped-flags.ts";

export interface IntakeOptions extends PoolOptions {
  readonly workerPool: WorkerPool;
  readonly slots: readonly Slot[];
  /** The names by which this worker can be paused. */
  readonly workerNames: () => readonly string[];
  readonly outage: Outage;
  readonly strays: Strays;
  readonly localQueue: LocalQueueView | undefined;
  readonly pauses: PauseGate;
  readonly dispatcher: Dispatcher;
  readonly queueNotices: QueueNotices | undefined;
  readonly placeNotices: PlaceNotices;
  readonly writeBack: WriteBack;
  readonly cancels: CancelWatch | undefined;
}

/** Brings jobs in: listens for them, claims them for this pool's tasks, and hands them to the dispatcher until it is closed. */
export class Intake {
  readonly freedPlaces: FreedPlaces;
  readonly #options: IntakeOptions;
  readonly #tasks: KnownTasks;
  readonly #fleet: Fleet;
  readonly #claimer: Claimer;
  readonly #limits: LimitedClaims;
  readonly #admission: Admission;
  readonly #skippedFlags: SkippedFlags;
  readonly #events: ClaimEvents;
  readonly #listener: Listener | undefined;
  readonly #stop = new AbortController();
  readonly #firstScan = deferred();
  #claiming: Promise<void> = Promise.resolve();
  #isDeaf = false;

  constructor({ database, ...others }: IntakeOptions) {
    // What is claimed after the stop began would only be returned.
    const options = { ...others, database: database.until(this.#stop.signal) };
    this.#options = options;
    this.#tasks = new KnownTasks(options);
    this.#admission = new Admission({
      ...options,
      isOpen: () => this.isOpen,
      onRoom: () => this.#claimer.wake(),
      onShortage: () => this.#events.cameUpEmpty(),
    });
    this.#skippedFlags = new SkippedFlags(options);
    this.#events = new ClaimEvents({ ...options, freeSlots: () => options.dispatcher.freeSlots });
    this.#fleet = this.#makeFleet();
    this.#limits = new LimitedClaims({
      database: options.database,
      declaration: options.limitDeclaration,
      relaxed: options.ownsTransactions,
      lateness: options.dispatcher.lateness,
      timed: () => options.dispatcher.timed,
      isCrowded: () => options.dispatcher.isCrowded,
      isPaced: options.localQueue === undefined,
      pollInterval: () => this.#pollInterval,
      onLimited: options.onLimited,
    });
    this.#claimer = this.#makeClaimer();
    this.freedPlaces = new FreedPlaces({
      limits: this.#limits,
      notices: options.placeNotices,
      claimer: this.#claimer,
      poolId: () => options.workerPool.id,
      mayLend: () => this.isOpen && options.ownsTransactions && options.mayHoldAhead && !options.localQueue,
    });
    this.#listener = this.#makeListener();
  }

  get isOpen(): boolean {
    return !this.#stop.signal.aborted;
  }

  /** When the claimer's loop last turned, on the monotonic clock. */
  get turnedAt(): number {
    return this.#claimer.turnedAt;
  }

  /** Plugins know that the workers start, which happens with the first claim. */
  get hasStartedWorkers(): boolean {
    return this.#skippedFlags.hasStartedWorkers;
  }

  start(): void {
    this.#options.pauses.start();
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

  /** A named queue that we held is free for its next job. */
  queueReleased(queueId: number): void {
    this.#claimer.queueReleased(queueId);
  }

  /** Jobs that are known of may find a place now. */
  wake(): void {
    this.#claimer.wake();
  }

  /** A slot is free. While no notifications arrive, that is a reason to scan. */
  noticeRoom(): void {
    this.#admission.noticeStart();
    if (this.isTold) this.#claimer.wake();
    else this.#claimer.nudge();
  }

  /** A job will be due then. */
  expect(inMs: number): void {
    this.#claimer.expect(inMs);
  }

  /** A moment ago, a claim found many places free in all limits. */
  get hasPlentyOfPlaces(): boolean {
    return this.#limits.arePlenty(monotonicMs());
  }

  /** Limits have changed, or a job asked to hold back others: what is held and not started is judged again. */
  limitsChanged(taskId?: number): void {
    this.#options.dispatcher.returnHeld(({ task_id }) => task_id === taskId || this.#limits.isLimited(task_id));
  }

  refreshTasks(): void {
    this.#tasks.forget();
    this.#limits.forget();
    this.#claimer.nudge();
  }

  /** Stops claiming; jobs of a claim under way are returned. */
  close(): void {
    this.#stop.abort();
    this.#fleet.close();
    this.#options.pauses.stop();
    this.#admission.close();
  }

  /** Jobs that are ours and whose payload is still being read. */
  reading(): Job[] {
    return this.#admission.reading();
  }

  /** Notifications arrive. */
  get isTold(): boolean {
    return this.#listener?.isListening ?? false;
  }

  /** Jobs are held, and no notification would tell of a pause. */
  get holdsUntold(): boolean {
    const { dispatcher, ownsTransactions } = this.#options;
    if (!ownsTransactions || this.isTold) return false;
    return dispatcher.waiting > 0 || this.reading().length > 0;
  }

  /** Resolves when no claim is under way any more. */
  async ended(): Promise<void> {
    await this.#claiming.catch(() => undefined);
  }

  async stopListening(): Promise<void> {
    await this.#listener?.stop();
  }

  get #isQuiet(): boolean {
    const { dispatcher, writeBack } = this.#options;
    if (writeBack.isReturning || writeBack.isReleasing) return false;
    return dispatcher.isQuiet && this.reading().length === 0;
  }

  /** What is being read will need a place, too. */
  #room(): Room | null {
    const { localQueue, dispatcher, writeBack, ownsTransactions, lifeline } = this.#options;
    if (lifeline?.mayWork === false) return null;
    const room = localQueue?.isResting || writeBack.mustBeWaitedFor ? null : dispatcher.room();
    const reading = ownsTransactions ? this.#admission.load : this.reading().length;
    if (!room || reading === 0) return room;
    return room.jobs > reading ? { ...room, jobs: room.jobs - reading, idle: room.idle - reading } : null;
  }

  #makeClaimer(): Claimer {
    const { database, settings, outage, strays, localQueue, workerPool, lifeline } = this.#options;
    return new Claimer({
      database,
      lifeline,
      outage,
      strays,
      limits: this.#limits,
      poolId: () => workerPool.id,
      workerNames: () => this.#options.workerNames(),
      fleet: this.#fleet,
      schema: database.schema,
      tasks: (isChecked) => this.#tasks.ids(isChecked),
      onTasksChecked: (areKnown) => {
        if (areKnown) this.#tasks.confirm();
        else this.refreshTasks();
      },
      room: () => this.#room(),
      forbiddenFlags: () => this.#skippedFlags.ask(),
      acceptedFlags: settings.acceptedFlags ?? null,
      useNodeTime: settings.useNodeTime,
      relaxed: this.#options.ownsTransactions,
      pollInterval: () => this.#pollInterval,
      onClaiming: () => {
        this.#admission.claiming();
        localQueue?.polling();
        this.#events.started();
      },
      onPauses: (pauses, askedAt) => this.#options.pauses.learn(pauses, askedAt),
      onClaimed: (jobs, wanted, bytes, unread, starts) => {
        this.#firstScan.resolve();
        if (starts) this.#options.placeNotices.claimed(jobs);
        this.#admission.admit({ jobs, wanted, bytes, unread, starts });
      },
      onAnswer: (jobs, wanted, durationMs) => this.#events.answered(jobs, wanted, durationMs),
      onError: (error) => {
        this.#firstScan.resolve();
        this.#events.failed(error);
      },
    });
  }

  /** Others' scans stand for ours only where all processes decide alike. */
  #makeFleet(): Fleet {
    const { settings, isOnce, mayHoldAhead, ownsTransactions, localQueue, workerPool, slots } = this.#options;
    const isLikeOthers = !isOnce && !settings.useNodeTime && mayHoldAhead && ownsTransactions && !localQueue;
    return new Fleet({
      id: () => workerPool.id,
      slots: () => slots.length,
      isOpen: () => isLikeOthers && this.isOpen && this.#listener?.isListening === true,
      onFollow: (count) => workerPool.nudge(count),
    });
  }

  #hearFleet(payload: string | undefined): void {
    this.#options.lifeline?.hearFleet(payload);
    const news = readFleetNews(payload);
    if (news && this.#fleet.hear(news)) this.#claimer.rely(news.due);
  }

  #makeListener(): Listener | undefined {
    const { listenOn } = this.#options;
    if (!listenOn) return undefined;
    return hearJobs({
      ...this.#options,
      ...listenOn,
      // Jobs that are there already need not wait until another connection is made.
      after: this.#firstScan.promise,
      onListening: () => {
        this.#claimer.nudge();
        this.#options.pauses.ask();
        this.#options.cancels?.ask();
      },
      onLost: () => this.#fleet.forget(),
      onJobs: (count, insert) => {
        if (count <= 0 || this.#fleet.hearInsert(insert, count)) this.#options.workerPool.nudge(count);
      },
      onFleet: (payload) => this.#hearFleet(payload),
      onPauses: () => this.#options.pauses.ask(),
      onLimits: (haveChanged) => {
        if (haveChanged) {
          this.limitsChanged();
          this.#claimer.nudge();
        }
        this.#claimer.nudgeLimited();
      },
      onCancel: (payload) => this.#options.cancels?.hear(payload),
      onDeaf: () => {
        this.#isDeaf = true;
        this.#claimer.nudge();
        this.#options.cancels?.pollEvery(Math.min(deafPollMs, this.#options.settings.pollInterval));
      },
    });
  }

  get #pollInterval(): number {
    const { pollInterval } = this.#options.settings;
    return this.#isDeaf ? Math.min(deafPollMs, pollInterval) : pollInterval;
  }
}
