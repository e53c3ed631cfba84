import type { Clock } from "../../src/cron/clock.ts";

interface Sleeper {
  readonly wakeAt: number;
  readonly wake: () => void;
}

/** A clock that moves only when told to, and only while everybody who shares it is asleep. */
export class TestClock implements Clock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();
  #onSleep: (() => void) | undefined;

  constructor(start: string) {
    this.#now = Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const sleeper: Sleeper = { wakeAt: this.#now + ms, wake };
      this.#sleepers.add(sleeper);
      signal.addEventListener("abort", wake, { once: true });
      if (signal.aborted) wake();
      this.#onSleep?.();
    });
  }

  /** Resolves when this many are asleep at once. */
  async asleep(count: number): Promise<void> {
    while (this.#sleepers.size < count) {
      await new Promise<void>((resolve) => {
        this.#onSleep = resolve;
      });
    }
  }

  /** Moves on to a moment, waking whoever is due on the way and waiting until all `count` sleep again. */
  async advanceTo(moment: string, count = 1): Promise<void> {
    const until = Date.parse(moment);
    await this.asleep(count);
    for (;;) {
      const due = [...this.#sleepers].filter(({ wakeAt }) => wakeAt <= until);
      if (due.length === 0) break;
      this.#now = Math.max(this.#now, Math.min(...due.map(({ wakeAt }) => wakeAt)));
      for (const { wakeAt, wake } of due) if (wakeAt <= this.#now) wake();
      await this.asleep(count);
    }
    this.#now = Math.max(this.#now, until);
  }

  /** Jumps, as a machine's clock does after a sleep, and goes on for a second: timers fire, but late. */
  async jumpTo(moment: string, count = 1): Promise<void> {
    await this.asleep(count);
    this.#now = Date.parse(moment);
    await this.advanceTo(new Date(this.#now + 1_000).toISOString(), count);
  }

  /** Fires everybody's timer before its time. */
  async wakeEarly(count = 1): Promise<void> {
    await this.asleep(count);
    for (const { wake } of this.#sleepers) wake();
    await this.asleep(count);
  }
}
