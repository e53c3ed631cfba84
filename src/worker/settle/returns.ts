import type { Database } from "../../db/database.ts";
import { type MoveParams, moveReturnedJob, returnJobs } from "../../db/statements/settle.ts";
import type { Job } from "../../job.ts";
import { backoffMs } from "../../util/backoff.ts";
import { sleep } from "../../util/sleep.ts";
import type { WorkerPool } from "../../worker.ts";
import type { Unstarted } from "../claim/buffer.ts";
import { heldBackoff, type SureWrites } from "./sure-writes.ts";
import type { Unwritten } from "./unwritten.ts";

export interface ReturnsOptions {
  readonly database: Database;
  readonly workerPool: WorkerPool;
  readonly writes: SureWrites;
  readonly unwritten: Pick<Unwritten, "endedIn">;
  /** Jobs that were not started are back in line, and these queues are released. */
  readonly onReturned: (jobs: readonly Job[], queueIds: readonly number[]) => void;
  /** A return is complete. */
  readonly onThrough: () => void;
}

/** Puts jobs back in line: those that were claimed and not started, and those that were cut off while they ran. */
export class Returns {
  readonly #options: ReturnsOptions;
  readonly #beingReturned = new Set<Job>();
  /** Returns that may or may not have gone through, unheard. The search for strays makes up for them. */
  readonly #inDoubt = new Set<Unstarted>();
  #firstTries = 0;

  constructor(options: ReturnsOptions) {
    this.#options = options;
  }

  /** Jobs that were not started and are not back in line yet. */
  get jobs(): ReadonlySet<Job> {
    return this.#beingReturned;
  }

  /** What is claimed now would overtake jobs that are on their way back and that nothing holds. */
  get mustBeWaitedFor(): boolean {
    return this.#firstTries > 0;
  }

  isReturningTo(queueId: number): boolean {
    const isOfQueue = ({ job_queue_id }: Job): boolean => job_queue_id === queueId;
    for (const job of this.#beingReturned) if (isOfQueue(job)) return true;
    for (const { jobs } of this.#inDoubt) if (jobs.some(isOfQueue)) return true;
    return false;
  }

  /** A search for strays begins; what it gives is to be called when everything that we do not hold is back in line. */
  searching(): () => void {
    const doubts = [...this.#inDoubt];
    return () => {
      for (const doubt of doubts) this.#inDoubt.delete(doubt);
      for (const { queueIds } of doubts) this.#options.onReturned([], queueIds);
      if (doubts.length > 0) this.#options.onThrough();
    };
  }

  /** Returns jobs that were claimed and not started; to run after a rest, if one is given. */
  returnUnstarted({ jobs, queueIds }: Unstarted, delayMs: number | null): void {
    if (jobs.length === 0) return;
    const { writes, onReturned } = this.#options;
    for (const job of jobs) this.#beingReturned.add(job);
    const onBack = (returned: readonly Job[], released: readonly number[]): void => {
      for (const job of returned) this.#beingReturned.delete(job);
      onReturned(returned, released);
    };
    const returning = this.#return(jobs, queueIds, { hasStarted: false, delayMs, reason: null }, onBack);
    const onFailed = (error: unknown): void => {
      for (const job of jobs) this.#beingReturned.delete(job);
      writes.die(error, "returnJob");
    };
    writes.track(returning.then(() => undefined, onFailed));
  }

  /** Returns jobs that were cut off while they ran; gives the ids of those that were no longer ours, or could not be written. */
  returnStarted({ jobs, queueIds }: Unstarted, delayMs: number, reason: string): Promise<Set<string>> {
    const returning = this.#return(jobs, queueIds, { hasStarted: true, delayMs, reason }, () => undefined);
    return this.#options.writes.unlessGivenUp(returning, () => new Set(jobs.map(({ id }) => id)));
  }

  /** Changes when a job that was returned runs again. If another transaction holds it, that is as soon as it lets go. */
  async move({ id, revision }: Job, to: { readonly runAt: Date; readonly attempts?: number }): Promise<void> {
    const params = { id, revision, runAt: to.runAt, attempts: to.attempts ?? null };
    await this.#options.writes.unlessGivenUp(this.#move(params), () => undefined);
  }

  async #move(params: MoveParams): Promise<void> {
    const { database, writes } = this.#options;
    for (let attempt = 0; ; attempt++) {
      const [row] = await writes.write(() => database.run(moveReturnedJob, params));
      if (!row?.is_held) return;
      await sleep(backoffMs(heldBackoff, attempt), writes.signal);
      if (!writes.signal.aborted) continue;
      writes.fallShort();
      throw writes.signal.reason;
    }
  }

  /** Returns jobs, those that another transaction holds later than the others; gives the ids of those that were no longer ours. */
  async #return(
    jobs: readonly Job[],
    queueIds: readonly number[],
    how: { readonly hasStarted: boolean; readonly delayMs: number | null; readonly reason: string | null },
    onBack: (jobs: readonly Job[], queueIds: readonly number[]) => void,
  ): Promise<Set<string>> {
    const { database, workerPool, writes, unwritten } = this.#options;
    const { signal } = writes;
    const poolId = jobs[0]!.locked_by!;
    this.#firstTries++;
    const lost = new Set<string>();
    let rest: { jobs: readonly Job[]; queueIds: readonly number[] } = { jobs, queueIds };
    for (let attempt = 0; rest.jobs.length > 0 || rest.queueIds.length > 0; attempt++) {
      if (attempt > 0) await sleep(backoffMs(heldBackoff, attempt), signal);
      if (attempt > 0 && signal.aborted) {
        writes.fallShort();
        throw signal.reason;
      }
      const params = {
        poolId,
        jobIds: rest.jobs.map(({ id }) => id),
        // The job of a task that has begun is the task's to change.
        attempts: how.hasStarted ? null : rest.jobs.map(({ attempts }) => attempts),
        queueIds: rest.queueIds,
        ...how,
      };
      const endedIds = unwritten.endedIn(rest.queueIds);
      let isInDoubt = false;
      const written = writes.write(async (mayBeDone) => {
        // If an earlier try went through unheard, we may hold the same jobs again by now: the search for strays knows.
        isInDoubt = mayBeDone && workerPool._active;
        return isInDoubt ? [] : database.run(returnJobs, { ...params, endedIds });
      });
      const [row] = await (attempt > 0 ? written : written.finally(() => this.#firstTries--));
      if (isInDoubt) {
        // Their queues stay locked until then, or later jobs would overtake them.
        this.#inDoubt.add(rest);
        onBack(rest.jobs, []);
        break;
      }
      for (const id of row?.lost ?? []) lost.add(id);
      const heldIds = new Set(row?.held);
      const heldJobs = rest.jobs.filter(({ id }) => heldIds.has(id));
      const heldQueues = new Set([...heldJobs.map((job) => job.job_queue_id), ...(row?.held_queues ?? [])]);
      onBack(
        rest.jobs.filter(({ id }) => !heldIds.has(id)),
        rest.queueIds.filter((queueId) => !heldQueues.has(queueId)),
      );
      rest = { jobs: heldJobs, queueIds: rest.queueIds.filter((queueId) => heldQueues.has(queueId)) };
    }
    this.#options.onThrough();
    return lost;
  }
}
