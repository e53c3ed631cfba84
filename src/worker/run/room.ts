import { monotonicMs } from "../../util/timers.ts";
import type { Room } from "../claim/claim-request.ts";
import type { Pace } from "../claim/pace.ts";
import type { HeldJobs } from "./held-jobs.ts";

export interface RoomOptions {
  readonly slots: number;
  readonly free: number;
  readonly held: HeldJobs;
  readonly pace: Pace;
  /** A fixed number of jobs to hold; undefined if the pace decides. */
  readonly localQueueSize: number | undefined;
  readonly mayHoldAhead: boolean;
}

/** How many jobs a pool may claim now: for its free slots, and some ahead of them. Null if a claim is not worth a statement. */
export function measureRoom({ slots, held, pace, localQueueSize, mayHoldAhead, ...rest }: RoomOptions): Room | null {
  // Jobs that wait for their queue leave slots idle, however many they are.
  const free = rest.free - held.timed;
  const idle = free - held.ready;
  if (localQueueSize !== undefined) {
    const jobs = Math.max(idle, localQueueSize - held.buffered);
    return idle > 0 && held.ready === 0 ? { jobs, idle, perQueue: jobs } : null;
  }
  const now = monotonicMs();
  const ahead = mayHoldAhead ? pace.ahead(slots, now) : 0;
  const jobs = Math.max(idle, free + ahead - held.buffered);
  if (jobs <= 0 || (idle <= 0 && jobs < ahead / 2)) return null;
  // The jobs of a queue run one after the other in one slot.
  return { jobs, idle: Math.max(0, idle), perQueue: ahead > 0 ? pace.inARow(now) : 1 };
}
