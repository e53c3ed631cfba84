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

  abort(message: string): void {
    // The name that everything which takes a signal uses, and that users look for.
    this.#controller.abort(new DOMException(message, "AbortError"));
  }
}
