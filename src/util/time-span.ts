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
