import { parseSpan } from "../util/time-span.ts";

/** A time phrase such as `4w3d2h1m` in milliseconds. Expects text that {@link isTimePhrase} accepts. */
export function parseTimePhrase(phrase: string): number {
  return parseSpan(phrase) ?? 0;
}

export function isTimePhrase(text: string): boolean {
  return /^(?:[0-9]+[smhdw])+$/.test(text);
}

/** A length of time in units people use. */
export interface TimeSpan {
  readonly weeks?: number;
  readonly days?: number;
  readonly hours?: number;
  readonly minutes?: number;
  readonly seconds?: number;
}

const spanUnitMs = {
  weeks: 604_800_000,
  days: 86_400_000,
  hours: 3_600_000,
  minutes: 60_000,
  seconds: 1_000,
} satisfies Record<keyof TimeSpan, number>;

/** The milliseconds of a span; a unit that is unknown, negative or not a number throws. */
export function toMilliseconds(span: TimeSpan): number {
  let totalMs = 0;
  for (const [unit, count] of Object.entries(span)) {
    const ms = spanUnitMs[unit as keyof TimeSpan];
    if (ms === undefined) {
      throw new RangeError(`'${unit}' is no unit of time; use ${Object.keys(spanUnitMs).join(", ")}.`);
    }
    if (typeof count !== "number" || !Number.isFinite(count) || count < 0) {
      throw new RangeError(`'${unit}' must be a number from 0 up, got ${String(count)}.`);
    }
    totalMs += count * ms;
  }
  return totalMs;
}
