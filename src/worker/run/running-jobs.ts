import type { Job } from "../../job.ts";
import type { StopSwitch } from "../stop/stop-switch.ts";
import type { JobRun } from "./job-run.ts";
import type { Slot } from "./slot.ts";

/** What runs in the slots of a pool. */
export class RunningJobs {
  readonly #slots: readonly Slot[];

  constructor(slots: readonly Slot[]) {
    this.#slots = slots;
  }

  runs(): JobRun[] {
    const runs: JobRun[] = [];
    for (const { run } of this.#slots) if (run) runs.push(run);
    return runs;
  }

  /** Jobs whose outcome is still to come. */
  jobs(): Job[] {
    return this.runs()
      .filter(({ isAbandoned }) => !isAbandoned)
      .map(({ job }) => job);
  }

  /** From now on the outcome of this job is decided elsewhere. */
  abandon(job: Job): void {
    const run = this.runs().find((each) => each.job === job);
    if (run) run.isAbandoned = true;
  }

  /** Tells a job to stop that is no longer ours, unless its outcome is decided: elsewhere, or by a transaction of its task. */
  lose(job: Job, reason: Error): void {
    const run = this.runs().find((each) => each.job === job);
    if (!run || run.isAbandoned || run.completion) return;
    run.isLost = true;
    run.abort(reason);
  }

  /** Tells everything that runs under this switch to stop. */
  abortAll(stopped: StopSwitch, reason: Error): void {
    for (const run of this.runs()) if (run.stopSwitch === stopped) run.abort(reason);
  }
}
