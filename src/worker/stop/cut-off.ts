import { ShutdownError } from "../../errors.ts";
import type { Job } from "../../job.ts";
import { ShutdownAbortError } from "../../job-errors.ts";
import { sleep } from "../../util/sleep.ts";
import { clearTimeout, setTimeout } from "../../util/timers.ts";
import type { Flow } from "../flow.ts";

/** How long a forceful shutdown tries to write what it decided. */
const forcefulMs = 5_000;
/** How long it then waits for what is under way. */
const overtimeMs = 250;
/** How long it waits for plugins. */
const stopHookMs = 5_000;

/**
 * Ends the flow without waiting: running jobs are failed, the others returned. Returns the failed jobs;
 * `writeWhatIsLeft` writes that, and then calls `onFailed` for each.
 */
export function cutOff(flow: Flow, error: ShutdownError, onFailed: (job: Job) => void): Job[] {
  const { intake, identity, localQueue, dispatcher, overruns, slots, writeBack, keeper } = flow;
  intake.close();
  keeper.stopSweeping();
  identity.stopSwitch.abort(new ShutdownAbortError(error.message));
  overruns.abandon();
  localQueue?.release();
  const jobs = dispatcher.running();
  writeBack.returnUnstarted(dispatcher.close());
  for (const job of jobs) {
    void dispatcher.fail(job, error).then((isLost) => {
      if (!isLost) onFailed(job);
    });
  }
  for (const slot of slots) void slot.release(true);
  return jobs;
}

/** Tries for a while; an unreachable database must not keep the process from ending. */
export async function writeWhatIsLeft({
  intake,
  writeBack,
  queueNotices,
  placeNotices,
  keeper,
  cancels,
}: Flow): Promise<void> {
  const tooLate = new ShutdownError(
    `Could not write how jobs ended within ${forcefulMs / 1000} s; their locks remain.`,
  );
  // A graceful stop has tried for longer than this, in vain.
  const patienceMs = writeBack.shortfall && !writeBack.fatal ? 0 : forcefulMs;
  const giveUpTimer = setTimeout(() => writeBack.giveUp(tooLate), patienceMs);
  const cancel = new AbortController();
  let isClaiming = true;
  const written = async (): Promise<boolean> => {
    // Listening ends at once: where jobs hold all other connections, the last writes need this one.
    const claimsEnded = intake.ended().then(() => {
      isClaiming = false;
    });
    await Promise.all([intake.stopListening(), claimsEnded]); // what it still brings is returned
    await Promise.all([writeBack.settled(), keeper.stop(), cancels?.stop()]);
    await writeBack.returned();
    await Promise.all([queueNotices?.close(), placeNotices.close()]);
    await writeBack.returnStrays(); // of a claim whose response was lost
    return true;
  };
  const isWritten = await Promise.race([written(), sleep(patienceMs + overtimeMs, cancel.signal).then(() => false)]);
  clearTimeout(giveUpTimer);
  cancel.abort();
  if (!isWritten) writeBack.leave(tooLate, isClaiming);
  if (writeBack.shortfall && !writeBack.fatal) throw writeBack.shortfall;
  if (!isWritten) throw tooLate;
}

/** Waits until plugins have heard that the workers stop; a hook that takes long must not keep a process that is to end. */
export async function slotsStopped({ slots }: Flow): Promise<void> {
  const cancel = new AbortController();
  const stopped = Promise.all(slots.map((slot) => slot.promise));
  await Promise.race([stopped, sleep(stopHookMs, cancel.signal)]);
  cancel.abort();
}
