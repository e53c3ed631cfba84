import type { Emit } from "../../events.ts";
import type { Outcome } from "../run/outcome.ts";
import { announceWritten } from "./announce.ts";
import type { EndedJob } from "./ended-job.ts";

export interface ConcludeOptions {
  readonly emit: Emit;
  /** The outcome of a job that a slot ran is written. */
  readonly onSettled: (outcome: Outcome) => void;
}

/** What follows once the end of a job is written, and as what (`written`); `isLost` if the job was no longer ours. */
export function conclude(
  { emit, onSettled }: ConcludeOptions,
  ended: EndedJob,
  written: Outcome,
  isLost: boolean,
): void {
  announceWritten(emit, ended, written, isLost);
  ended.onWritten?.(isLost);
  if (ended.worker) onSettled(written);
}
