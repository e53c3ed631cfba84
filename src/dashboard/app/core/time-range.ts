/** A range in an address: `1h` is relative and stays so in a link, anything else is a moment. */
const lengths: Readonly<Record<string, number>> = {
  "15m": 15,
  "1h": 60,
  "6h": 360,
  "1d": 1_440,
  "7d": 10_080,
  "30d": 43_200,
};
const minuteMs = 60_000;

/** The moment that a range begins, to the minute, so that a page's question does not change every second. */
export function sinceOf(text: string | null, now: number): string | undefined {
  if (!text) return undefined;
  const minutes = lengths[text];
  if (minutes === undefined) return text;
  return new Date(Math.floor(now / minuteMs - minutes) * minuteMs).toISOString();
}

export const isRelative = (text: string | null): boolean => text !== null && text in lengths;
