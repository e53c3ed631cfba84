import { ShutdownError } from "../errors.ts";
import type { Job } from "../job.ts";
import { sleep } from "../util/sleep.ts";
import type { Flow } from "./flow.ts";

/** How long a forceful shutdown tries to write what it decided. */
const forcefulMs = 5_000;
/** How long it then waits for what is under way. */
const overtimeMs = 250;

/**
 * Ends the flow without waiting for what runs: that is failed, and the rest given back. Gives the jobs that are failed;
 * `writeWhatIsLeft` sees to it that the database knows, and then `onFailed` is told of each.
 */
export function cutOff(flow: Flow, error: ShutdownError, onFailed: (job: Job) => void): Job[] {
  const { intake, identity, localQueue, dispatcher, slots, writeBack } = flow;
  intake.close();
  identity.stopSwitch.abort(error.message);
  localQueue?.release();
  const jobs = dispatcher.running();
  writeBack.giveBack(dispatcher.close());
  for (const job of jobs) {
    void writeBack.fail(job, error, dispatcher.abandon(job)).then((isLost) => {
      if (!isLost) onFailed(job);
    });
  }
  for (const slot of slots) void slot.release(true);
  return jobs;
}

/** Tries for a while; a database that is away must not keep a process that is to end. */
export async function writeWhatIsLeft({ intake, writeBack, handOver, keeper }: Flow): Promise<void> {
  const tooLate = new ShutdownError(
    `Could not write how jobs ended within ${forcefulMs / 1000} s; their locks remain.`,
  );
  const giveUpTimer = setTimeout(() => writeBack.giveUp(tooLate), forcefulMs);
  const cancel = new AbortController();
  const written = async (): Promise<boolean> => {
    await intake.ended(); // what it still brings is returned
    await Promise.all([writeBack.settled(), keeper.stop(), intake.stopListening()]);
    await writeBack.returned();
    await handOver?.stop();
    return true;
  };
  const isWritten = await Promise.race([written(), sleep(forcefulMs + overtimeMs, cancel.signal).then(() => false)]);
  clearTimeout(giveUpTimer);
  cancel.abort();
  if (!isWritten) throw tooLate;
  if (writeBack.shortfall && !writeBack.fatal) throw writeBack.shortfall;
}
