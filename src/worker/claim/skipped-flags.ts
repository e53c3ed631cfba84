import type { PoolOptions } from "../pool-options.ts";
import type { Slot } from "../run/slot.ts";

export interface SkippedFlagsOptions extends Pick<PoolOptions, "forbiddenFlags" | "hooks"> {
  readonly slots: readonly Slot[];
}

/** Which flags a claim skips. Before the first claim, plugins hear that each worker starts, and may change them for that claim. */
export class SkippedFlags {
  readonly #options: SkippedFlagsOptions;
  #first: Promise<string[] | null> | undefined;

  constructor(options: SkippedFlagsOptions) {
    this.#options = options;
  }

  /** Plugins know that the workers start, which happens with the first claim. */
  get hasStartedWorkers(): boolean {
    return this.#first !== undefined;
  }

  async ask(): Promise<readonly string[] | null> {
    const flags = await this.#options.forbiddenFlags();
    if (this.#first) return flags;
    this.#first = this.#startWorkers(flags ? [...flags] : null);
    return this.#first;
  }

  async #startWorkers(flags: string[] | null): Promise<string[] | null> {
    const { hooks, slots } = this.#options;
    let flagsToSkip = flags;
    for (const worker of slots) flagsToSkip = await hooks.onWorkerStart(worker, flagsToSkip);
    return flagsToSkip;
  }
}
