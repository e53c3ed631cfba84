import type { Logger } from "./logger.ts";
import type { Task } from "./task.ts";
import type { TaskRunOptions } from "./task-options.ts";

/** What a forwarder gets when its worker starts. */
interface ForwardContext {
  readonly schema: string;
  readonly logger: Logger;
}

/** A forwarder at work. */
export interface OpenForwarder {
  /** Resolves when the target has taken the job. */
  readonly task: Task;
  /** Sends nothing more: what the target does not have yet is put back, and uses no attempt. */
  close(): void;
  /** Waits for the target no longer: what it has not answered is put back too, and arrives a second time if the target took it. */
  abandon(): void;
}

/** Sends jobs of certain tasks to another system: what the option `forward` takes, and `forward` of `hathi/forward` gives. */
export interface Forwarder {
  /** The names of tasks; `*` stands for any characters. */
  readonly tasks: readonly string[];
  /** How many jobs may be on their way at once. */
  readonly maxInFlight: number;
  readonly taskOptions: TaskRunOptions;
  open(context: ForwardContext): OpenForwarder;
}
