import { ShutdownError } from "../../errors.ts";
import { ShutdownAbortError } from "../../job-errors.ts";
import { deferred } from "../../util/deferred.ts";
import { sleep } from "../../util/sleep.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";
import type { Flow } from "../flow.ts";
import type { PoolOptions } from "../pool-options.ts";
import { interruptJobs } from "./interrupt-jobs.ts";

const interruptedMessage = "Job recovered after worker interruption";
const timeIsOver = "The worker is shutting down and the job's time is over.";

/** How long the end of a worker waits for an unreachable database once no job runs; a restart or a fail-over takes less. */
const patienceMs = 60_000;
/** A grace period says how long the end may take; the last writes get this much on top of it. */
const overtimeMs = 5_000;
/** How long the end then waits for what is under way: a write may wait for a connection that a job never lets go. */
const lastWordMs = 1_000;

/**
 * The flow cut off at the left and drained to the right: resolves when all is written and nothing is held any more. A database
 * that stays unreachable must not keep a process that is to end, so after a while it rejects instead. If the pool has ended before
 * that, by force, nothing is waited for any more.
 */
export async function windDown(flow: Flow, options: PoolOptions, hasEnded: Promise<void>): Promise<void> {
  const { shutdownGracePeriod } = options.settings;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  let isClaiming = true;
  void flow.intake.ended().then(() => {
    isClaiming = false;
  });
  const tooLate = deferred<never>();
  const writeWithin = (ms: number): void => {
    if (isOver) return;
    timer ??= setTimeout(() => {
      const error = stayedAway(ms);
      flow.writeBack.giveUp(error);
      timer = setTimeout(() => {
        flow.writeBack.leave(error, isClaiming);
        tooLate.reject(error);
      }, lastWordMs);
    }, ms);
  };
  if (shutdownGracePeriod !== undefined) writeWithin(shutdownGracePeriod + overtimeMs);
  try {
    await Promise.race([drain(flow, options, () => writeWithin(patienceMs)), tooLate.promise, hasEnded]);
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}

function stayedAway(ms: number): ShutdownError {
  return new ShutdownError(
    `The database did not accept the worker's last writes within ${ms / 1000} s (it is unreachable, or jobs hold every connection ` +
      "of the pool), so the worker ends without them. " +
      "Jobs whose outcome could not be written, or whose claim response was lost, stay locked until recovery releases them.",
  );
}

async function drain(flow: Flow, options: PoolOptions, onNothingRuns: () => void): Promise<void> {
  const { intake, localQueue, dispatcher, writeBack, queueNotices, placeNotices, keeper, cancels } = flow;
  intake.close();
  keeper.stopSweeping();
  localQueue?.release();
  writeBack.returnUnstarted(dispatcher.close());
  // What a claim under way still brings is returned. Jobs need not end for that, so their time runs from now on.
  const claimsEnded = intake.ended().then(() => writeBack.returned());
  const slotsEnded = waitForSlots(flow, options).then(onNothingRuns);
  await Promise.all([claimsEnded, slotsEnded, intake.stopListening()]);
  await Promise.all([writeBack.settled(), keeper.stop(), cancels?.stop()]);
  await Promise.all([queueNotices?.close(), placeNotices.close()]);
  await writeBack.returnStrays();
  // The error that ended the pool is reported in any case.
  if (writeBack.shortfall && !writeBack.fatal) throw writeBack.shortfall;
}

async function waitForSlots(flow: Flow, options: PoolOptions): Promise<void> {
  const { shutdownGracePeriod } = options.settings;
  const allEnded = Promise.all(flow.slots.map((slot) => slot.release()));
  if (shutdownGracePeriod === undefined) {
    await allEnded;
    return;
  }
  const isEnded = allEnded.then(() => true);
  const timer = new AbortController();
  const inTime = await Promise.race([isEnded, sleep(shutdownGracePeriod, timer.signal).then(() => false)]);
  timer.abort();
  if (!inTime) await interrupt(flow, options);
}

/** Gives running jobs back: the process must go, and it is not their fault. */
async function interrupt(flow: Flow, { emit, settings, interceptors }: PoolOptions): Promise<void> {
  const { identity, dispatcher, overruns, slots, writeBack } = flow;
  const ours = new Set(dispatcher.running());
  const running = slots.flatMap((worker) => {
    const job = worker.getActiveJob();
    return job && ours.has(job) ? [{ worker, job }] : [];
  });
  await interruptJobs(running, {
    decide: interceptors?.onInterrupt,
    isRunning: (job) => dispatcher.running().includes(job),
    abort: () => identity.stopSwitch.abort(new ShutdownAbortError(timeIsOver)),
    abandon: (job) => dispatcher.abandon(job),
    returnJobs: (jobs, queueIds, atLeastMs) => {
      const delayMs = Math.max(atLeastMs, settings.interruptedJobRetryDelay);
      return writeBack.returnStarted({ jobs, queueIds }, delayMs, interruptedMessage);
    },
    move: (job, to) => writeBack.move(job, to),
    fail: ({ job }) => dispatcher.fail(job, new ShutdownError(interruptedMessage)),
    onInterrupted: ({ worker, job }) => emit("job:interrupted", { worker, job, reason: interruptedMessage }),
  });
  overruns.abandon();
  for (const slot of slots) void slot.release(true);
}
