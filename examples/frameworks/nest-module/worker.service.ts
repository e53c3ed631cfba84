import type { OnApplicationBootstrap, OnApplicationShutdown } from "@nestjs/common";
import { type Runner, type RunnerOptions, run, type Task, type WorkerUtils } from "hathi";

/** Runs the worker for as long as the application is up. */
export class WorkerService implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #utils: WorkerUtils;
  readonly #options: RunnerOptions;
  readonly #taskList: Readonly<Record<string, Task>>;
  #runner: Runner | undefined;

  constructor(utils: WorkerUtils, options: RunnerOptions, taskList: Readonly<Record<string, Task>>) {
    this.#utils = utils;
    this.#options = options;
    this.#taskList = taskList;
  }

  async onApplicationBootstrap(): Promise<void> {
    if (Object.keys(this.#taskList).length === 0) return;
    // Nest hears the signals, and tells us when it shuts down.
    this.#runner = await run({ ...this.#options, taskList: { ...this.#taskList }, noHandleSignals: true });
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#runner?.stop("The application shuts down");
    await this.#utils.release();
  }
}
