import { deferred } from "../../util/deferred.ts";

/** Stops everything that runs under one pool id: as a signal, and as a promise for `Promise.race`. */
export class StopSwitch {
  readonly #controller = new AbortController();
  readonly promise: Promise<never>;

  /** Jobs have signals of their own: `onAbort` tells them. */
  constructor(onAbort: (reason: Error) => void) {
    const aborted = deferred<never>();
    this.promise = aborted.promise;
    this.promise.catch(() => undefined); // most jobs never look at it
    const tell = (): void => {
      aborted.reject(this.signal.reason);
      onAbort(this.signal.reason as Error);
    };
    this.signal.addEventListener("abort", tell, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }
}
