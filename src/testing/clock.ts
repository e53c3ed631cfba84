import { channel } from "node:diagnostics_channel";

/** Milliseconds, or a sum of units. */
export type TimeSpan =
  | number
  | { readonly days?: number; readonly hours?: number; readonly minutes?: number; readonly seconds?: number };

/** Moves the time (`Date`) of this process. The clock keeps running; timers are not affected. */
export interface TestClock {
  /** The time that code in this process sees. */
  now(): Date;
  /** Moves the time forward, or back. */
  advance(by: TimeSpan): void;
  /** Sets the time. */
  set(to: Date): void;
  /** Returns to the real time. */
  reset(): void;
  /** Milliseconds between the real time and this one. */
  readonly offsetMs: number;
}

/** Running workers hear of it, also those of another copy of the library. */
const movedTime = channel("hathi:testing:moved-time");

let offsetMs = 0;
let real: DateConstructor | undefined;

/**
 * What moves is `Date` itself, for all code of this process: a test queue asks for jobs that are due by it, tasks read it, and
 * jobs that name no time are added at it. Timers stay as they are, since a worker could not work without them; but jobs that run grow
 * older when it moves forward, so their timeouts can be tried.
 */
export const clock: TestClock = {
  now: () => new Date(),
  advance: (by) => moveTo(offsetMs + toMs(by)),
  set: (to) => moveTo(to.getTime() - realNow()),
  reset: () => moveTo(0),
  get offsetMs() {
    return offsetMs;
  },
};

function moveTo(newOffsetMs: number): void {
  if (!Number.isFinite(newOffsetMs)) throw new Error("The clock can only be moved to a valid moment.");
  const movedMs = newOffsetMs - offsetMs;
  offsetMs = newOffsetMs;
  if (offsetMs !== 0 && !real) {
    real = globalThis.Date;
    globalThis.Date = shifted(real);
  } else if (offsetMs === 0 && real) {
    globalThis.Date = real;
    real = undefined;
  }
  if (movedMs !== 0) movedTime.publish(movedMs);
}

function realNow(): number {
  return (real ?? Date).now();
}

/** A proxy and no subclass: what it makes are real dates, and `instanceof` works for those that were made before. */
function shifted(target: DateConstructor): DateConstructor {
  const now = (): number => target.now() + offsetMs;
  const proxy: DateConstructor = new Proxy(target, {
    construct: (_, given, newTarget) =>
      Reflect.construct(target, given.length === 0 ? [now()] : given, newTarget === proxy ? target : newTarget),
    apply: () => new target(now()).toString(),
    get: (_, key) => (key === "now" ? now : Reflect.get(target, key)),
  });
  return proxy;
}

function toMs(span: TimeSpan): number {
  if (typeof span === "number") return span;
  const { days = 0, hours = 0, minutes = 0, seconds = 0 } = span;
  return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
}
