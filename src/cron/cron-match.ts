import type { ParsedCronMatch, PatternMatcher } from "./cron-item.ts";

/**
 * A function that follows cron's rule: minute, hour and month must match; if both date and weekday are restricted, either
 * will do. A field that lists all its values restricts nothing, however it was written.
 */
export function createMatcher(parsed: ParsedCronMatch): PatternMatcher {
  const minutes = new Set(parsed.minutes);
  const hours = new Set(parsed.hours);
  const matchesDay = createDayMatcher(parsed);
  const match: PatternMatcher = Object.assign(
    ({ min, hour, date, month, dow }: Parameters<PatternMatcher>[0]) =>
      minutes.has(min) && hours.has(hour) && matchesDay(date, month, dow),
    { parsedCronMatch: parsed },
  );
  return match;
}

/** The part of the rule that looks at the day alone. */
export function createDayMatcher(parsed: ParsedCronMatch): (date: number, month: number, dow: number) => boolean {
  const dates = new Set(parsed.dates);
  const months = new Set(parsed.months);
  const dows = new Set(parsed.dows);
  const isEitherEnough = dates.size < 31 && dows.size < 7;
  return (date, month, dow) => {
    if (!months.has(month)) return false;
    return isEitherEnough ? dates.has(date) || dows.has(dow) : dates.has(date) && dows.has(dow);
  };
}
