import type { Moment } from "./basics.ts";
import type { Progress } from "./jobs.ts";
import type { PauseInfo } from "./limits.ts";

/** GET api/workers */
export interface WorkersPage {
  readonly now: Moment;
  readonly workers: readonly WorkerRow[];
}

export interface WorkerRow {
  readonly id: string;
  readonly life: "alive" | "silent" | "unknown";
  readonly startedAt: Moment | null;
  readonly lastHeartbeatAt: Moment | null;
  readonly hostname: string | null;
  readonly pid: number | null;
  readonly version: string | null;
  /** Of the app that it runs in. */
  readonly appVersion: string | null;
  readonly slots: number | null;
  /** Jobs that it holds. */
  readonly jobs: number;
  readonly queues: number;
  readonly oldestLockAt: Moment | null;
  readonly overruns: number;
  /** The longest recent delay of its event loop; null if it does not say. */
  readonly loopDelayMs: number | null;
  readonly tasks: readonly string[] | null;
  readonly isStopping: boolean;
  readonly pause: PauseInfo | null;
  /** What it runs now, the longest running first; at most 20. */
  readonly running: readonly RunningJob[];
}

interface RunningJob {
  readonly id: string;
  readonly task: string;
  readonly since: Moment;
  readonly progress: Progress | null;
}
