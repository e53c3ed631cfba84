/** Milliseconds, or a sum of units. */
export type TimeSpan =
  | number
  | { readonly days?: number; readonly hours?: number; readonly minutes?: number; readonly seconds?: number };

/** The time of this process, which a test may move. It goes on ticking. */
export interface TestClock {
  now(): Date;
  /** Moves it forward, or back. */
  advance(by: TimeSpan): void;
  set(to: Date): void;
  /** Shows the real time again. */
  reset(): void;
  readonly offsetMs: number;
}

let offsetMs = 0;
let real: DateConstructor | undefined;

/**
 * What moves is `Date` itself, for all code of this process: a test queue asks for jobs that are due by it, tasks read it, and
 * jobs that name no time are added at it. Timers stay as they are, since a worker could not work without them.
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
  offsetMs = newOffsetMs;
  if (offsetMs !== 0 && !real) {
    real = globalThis.Date;
    globalThis.Date = shifted(real);
  } else if (offsetMs === 0 && real) {
    globalThis.Date = real;
    real = undefined;
  }
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
