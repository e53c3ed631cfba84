import { clearTimeout, setTimeout } from "../../util/timers.ts";

/** Most of the time we claim again what we released; this is long enough for that. */
const delayMs = 10;

/** Notifies other pools, after a moment, of what we released and did not claim again. */
export class DelayedNotice {
  /** Sends the notification; undefined if there is nothing to send. */
  readonly #send: () => Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> = Promise.resolve();

  constructor(send: () => Promise<unknown> | undefined) {
    this.#send = send;
  }

  /** There may be something to send. */
  plan(): void {
    this.#timer ??= setTimeout(() => this.#sendNow(), delayMs);
  }

  /** There is nothing left to send. */
  cancel(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Sends what is left, at once. */
  async close(): Promise<void> {
    this.#sendNow();
    await this.#sending;
  }

  #sendNow(): void {
    this.cancel();
    const sent = this.#send()?.then(
      () => undefined,
      () => undefined, // other pools find it when they poll
    );
    if (sent) this.#sending = Promise.all([this.#sending, sent]).then(() => undefined);
  }
}
