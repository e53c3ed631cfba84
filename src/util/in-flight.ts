/** Keeps count of what is under way, so that an end can wait for it. */
export class InFlight {
  readonly #promises = new Set<Promise<unknown>>();

  /** The same function, with its calls counted until they settle. */
  track<Parameters extends unknown[], Result>(
    call: (...parameters: Parameters) => Promise<Result>,
  ): (...parameters: Parameters) => Promise<Result> {
    return (...parameters) => {
      const promise = call(...parameters);
      this.#promises.add(promise);
      const forget = (): void => {
        this.#promises.delete(promise);
      };
      promise.then(forget, forget);
      return promise;
    };
  }

  /** Resolves when all calls made until now have settled, well or not. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#promises);
  }
}
