import type { JobHelpers } from "hathi";

/** A provider that does the work of all jobs of one task. */
export interface TaskProvider<Payload> {
  readonly identifier: string;
  run(payload: Payload, helpers: JobHelpers): Promise<void>;
}

export type TaskProviderClass = new (...dependencies: never[]) => TaskProvider<never>;
