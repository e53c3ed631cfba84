const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const oneDecimal = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** `1,204` */
export function formatNumber(value: number): string {
  return whole.format(value);
}

/** `144`, `3.2`, `0.05`: few digits, but never a zero for what is not. */
export function formatRate(value: number): string {
  if (value >= 10 || value === 0) return whole.format(value);
  return value >= 0.1 ? oneDecimal.format(value) : value.toPrecision(1);
}

/** `0.3 %` for 0.003 */
export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${oneDecimal.format(percent)} %`;
}

/** `42 ms`, `2.1 s`, `4 min`, `3 h`, `2 d` */
export function formatDuration(ms: number): string {
  const size = Math.abs(ms);
  if (size < second) return `${whole.format(ms)} ms`;
  if (size < 10 * second) return `${oneDecimal.format(ms / second)} s`;
  if (size < 100 * second) return `${whole.format(ms / second)} s`;
  if (size < 100 * minute) return `${whole.format(ms / minute)} min`;
  if (size < 48 * hour) return `${whole.format(ms / hour)} h`;
  return `${whole.format(ms / day)} d`;
}

/** `3 min ago`, `in 2 s`, `now` */
export function formatRelative(at: number, now: number): string {
  const ms = at - now;
  if (Math.abs(ms) < second) return "now";
  const size = formatDuration(wholeUnits(Math.abs(ms)));
  return ms < 0 ? `${size} ago` : `in ${size}`;
}

/** Whole seconds below a minute and a half: a decimal that flickers cannot be read. */
function wholeUnits(ms: number): number {
  return ms < 100 * second ? Math.floor(ms / second) * second : ms;
}

export type Zone = "local" | "utc";

/** `2026-01-02 09:14:02.120` in the viewer's zone or UTC, with the zone's name. */
export function formatExact(at: Date, zone: Zone): string {
  if (Number.isNaN(at.getTime())) return "an unknown time";
  if (zone === "utc") return `${at.toISOString().replace("T", " ").replace("Z", "")} UTC`;
  const local = new Date(at.getTime() - at.getTimezoneOffset() * minute);
  const name = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" })
    .formatToParts(at)
    .find(({ type }) => type === "timeZoneName");
  return `${local.toISOString().replace("T", " ").replace("Z", "")} ${name?.value ?? ""}`.trim();
}

/** `09:14:02.120`, with the date in front if it is not today's. */
export function formatClock(at: Date, zone: Zone, now: number): string {
  const [date = "", time = ""] = formatExact(at, zone).split(" ");
  const [today] = formatExact(new Date(now), zone).split(" ");
  return date === today ? time : `${date} ${time}`;
}

/** `09:14` for an axis. */
export function formatMinute(at: number, zone: Zone): string {
  return formatExact(new Date(at), zone).slice(11, 16);
}

/** `1 job`, `2 jobs` */
export function plural(count: number, noun: string, many = `${noun}s`): string {
  return `${formatNumber(count)} ${count === 1 ? noun : many}`;
}
