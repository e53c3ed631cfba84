/** Rejects when a signal aborts. Made for every job and used by few, so the signal and the real promise are made on first use. */
export class AbortPromise implements Promise<never> {
  readonly [Symbol.toStringTag] = "Promise";
  readonly #run: { readonly signal: AbortSignal };
  #promise: Promise<never> | undefined;

  constructor(run: { readonly signal: AbortSignal }) {
    this.#run = run;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  then<A = never, B = never>(
    onFulfilled?: ((value: never) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#made.then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<B> {
    return this.#made.catch(onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<never> {
    return this.#made.finally(onFinally);
  }

  get #made(): Promise<never> {
    if (!this.#promise) {
      const { signal } = this.#run;
      this.#promise = new Promise((_resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
      this.#promise.catch(() => undefined); // whoever races against it need not handle it as well
    }
    return this.#promise;
  }
}
