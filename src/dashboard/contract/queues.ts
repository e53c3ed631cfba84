import type { BoundedCount, Moment } from "./basics.ts";
import type { PauseInfo } from "./limits.ts";

/** GET api/queues?search=&limit=100 */
export interface QueuesPage {
  readonly now: Moment;
  readonly queues: readonly QueueInfo[];
  /** There are more than are shown. */
  readonly isMore: boolean;
}

export interface QueueInfo {
  readonly name: string;
  readonly waiting: BoundedCount;
  readonly scheduled: BoundedCount;
  /** When its first job is or was due. */
  readonly nextRunAt: Moment | null;
  readonly heldSince: Moment | null;
  readonly heldBy: string | null;
  /** The job that holds it. */
  readonly job: { readonly id: string; readonly task: string } | null;
  readonly pause: PauseInfo | null;
}
