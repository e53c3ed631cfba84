import { Worker } from "node:worker_threads";
import type { HeartThreadData } from "./heart-thread.ts";

/** Starts the thread from its source. The build replaces this module with one that contains the thread's code: a bundle has no files beside it. */
export function spawnHeartThread(workerData: HeartThreadData): Worker {
  const file = new URL("./heart-thread.ts", import.meta.url);
  return new Worker(file, { workerData, execArgv: ["--import", "jiti/register"] });
}
