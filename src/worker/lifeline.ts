import type { AdoptParams } from "../db/statements/sweep.ts";
import type { Job } from "../job.ts";

/**
 * A pool's part in crash recovery. Nothing is claimed before `register` has succeeded, and `deregister` comes when nothing runs any
 * more.
 */
export interface Lifeline {
  /** False while a heartbeat is overdue: others may take our jobs soon, so nothing is claimed and nothing started. */
  readonly mayWork: boolean;
  /** Jobs wait that were running when a worker died, and one of them may run here now. */
  readonly hasSuspects: boolean;
  /** Claims one of those, with its task's name; null if there is none for us. A large payload is left out. */
  adopt(
    params: AdoptParams,
    nameById: ReadonlyMap<number, string>,
  ): Promise<{ readonly job: Job; readonly isUnread: boolean } | null>;
  /** The database does not know us as alive: find out at once. */
  doubt(): void;
  /** Another process of the fleet told of itself, or of its search for dead workers. */
  hearFleet(payload: string | undefined): void;
  register(taskNames: readonly string[]): Promise<void>;
  /** From here on a death is no job's fault: whoever asked us to stop may also have killed us. */
  announceStop(): void;
  /** With `leavesLocks` the worker only falls silent, so that others recover what is still locked under its name. */
  deregister(leavesLocks: boolean): Promise<void>;
}
