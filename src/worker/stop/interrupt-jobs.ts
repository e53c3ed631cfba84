import type { RecoveryDecision } from "../../hooks/results.ts";
import type { Job } from "../../job.ts";
import type { Worker } from "../../worker.ts";

export interface RunningJob {
  readonly worker: Worker;
  readonly job: Job;
}

export interface InterruptOptions {
  readonly decide: ((job: Job) => Promise<RecoveryDecision>) | undefined;
  /** False if the job has ended, or was given away, while the decision was made. */
  readonly isRunning: (job: Job) => boolean;
  /** Tells what runs to stop. */
  readonly abort: () => void;
  /** Gives the queue that is to be released with the job, if any. */
  readonly abandon: (job: Job) => number | null;
  /** Gives the ids of jobs that were no longer ours. */
  readonly returnJobs: (jobs: readonly Job[], queueIds: number[], atLeastMs: number) => Promise<Set<string>>;
  readonly move: (job: Job, to: { readonly runAt: Date; readonly attempts?: number }) => Promise<void>;
  /** Resolves to whether the job was no longer ours. */
  readonly fail: (running: RunningJob) => Promise<boolean>;
  readonly onInterrupted: (running: RunningJob) => void;
}

/** No worker may claim a job between its return and its move. */
const moveMs = 10_000;

/** Returns running jobs, or does with each what was decided; calls `onInterrupted` when it is written. */
export async function interruptJobs(running: readonly RunningJob[], options: InterruptOptions): Promise<void> {
  const { decide, isRunning, abort, abandon, onInterrupted } = options;
  const decided = await Promise.all(
    running.map(async (each) => ({ ...each, decision: decide ? await decide(each.job) : "default" })),
  );
  // Only now, and together with the next line: a job that fails because its signal aborted must not count as failed.
  abort();
  const interrupted = decided.filter(({ job }) => isRunning(job));
  const failed = interrupted.filter(({ decision }) => decision === "failWithBackoff");
  const back = interrupted
    .filter(({ decision }) => decision !== "failWithBackoff")
    .map((each) => ({ ...each, queueId: abandon(each.job) }));
  const returned = back.filter(({ decision }) => decision === "default");
  const moved = back.filter(({ decision }) => typeof decision === "object");

  await Promise.all([
    ...failed.map(async (each) => {
      if (!(await options.fail(each))) onInterrupted(each);
    }),
    returnAll(returned, 0, options),
    returnAll(moved, moveMs, options),
  ]);
}

async function returnAll(
  returned: readonly (RunningJob & { decision: string | { runAt: Date }; queueId: number | null })[],
  atLeastMs: number,
  { returnJobs, move, onInterrupted }: InterruptOptions,
): Promise<void> {
  if (returned.length === 0) return;
  const queueIds = returned.map(({ queueId }) => queueId).filter((id) => id !== null);
  const lost = await returnJobs(
    returned.map(({ job }) => job),
    queueIds,
    atLeastMs,
  );
  await Promise.all(
    returned.map(async (each) => {
      if (lost.has(each.job.id)) return;
      if (typeof each.decision === "object") await move(each.job, each.decision);
      onInterrupted(each);
    }),
  );
}
