import { deferred } from "../util/deferred.ts";

/** How running jobs are told to stop: as a signal, and as a promise for `Promise.race`. */
export class StopSwitch {
  readonly #controller = new AbortController();
  readonly promise: Promise<never>;

  constructor() {
    const aborted = deferred<never>();
    this.promise = aborted.promise;
    this.promise.catch(() => undefined); // most jobs never look at it
    this.signal.addEventListener("abort", () => aborted.reject(this.signal.reason), { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#controller.abort(reason);
  }
}
