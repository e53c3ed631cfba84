import type { Lifecycle } from "../../hooks/lifecycle.ts";
import type { SweepHooks } from "../../recovery/sweep-options.ts";

/** What hooks have to do with a sweep; where there are none, a sweep is one statement. */
export function sweepHooks(lifecycle: Lifecycle): SweepHooks {
  return {
    ...(lifecycle.has("jobRecovery") && { jobRecovery: (event) => lifecycle.askRecovery(event) }),
    ...(lifecycle.has("jobInterrupted") && {
      jobInterrupted: (event) => lifecycle.observe("jobInterrupted", event),
    }),
    ...(lifecycle.has("workerRecovered") && {
      workerRecovered: (event) => lifecycle.observe("workerRecovered", event),
    }),
  };
}
