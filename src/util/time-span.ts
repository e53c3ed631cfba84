const units: readonly (readonly [string, number])[] = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

/** A length of time as people say it: `2 days 4 hours`, `35 seconds`; never more than two units. */
export function formatSpan(ms: number): string {
  let rest = Math.round(Math.abs(ms) / 1000);
  if (rest === 0) return "less than a second";
  const parts: string[] = [];
  for (const [name, seconds] of units) {
    const count = Math.floor(rest / seconds);
    if (count === 0) {
      if (parts.length > 0) break;
      continue;
    }
    parts.push(`${count} ${name}${count === 1 ? "" : "s"}`);
    rest -= count * seconds;
    if (parts.length === 2) break;
  }
  return parts.join(" ");
}

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The milliseconds of a length of time such as `250ms`, `30s`, `1h30m` or `2d 4h`; undefined for anything else. */
export function parseSpan(text: string): number | undefined {
  if (!/^\s*(?:\d+(?:ms|[smhdw])\s*)+$/.test(text)) return undefined;
  let totalMs = 0;
  for (const [, count, unit = ""] of text.matchAll(/(\d+)(ms|[smhdw])/g))
    totalMs += Number(count) * (unitMs[unit] ?? 0);
  return totalMs;
}
