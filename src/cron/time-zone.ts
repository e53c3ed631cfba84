const minutesPerDay = 1_440;
const msPerMinute = 60_000;
/** Enough for a decade in one zone; beyond it the cache starts afresh. */
const maxCachedDays = 4_000;

/** The offsets of one UTC day: `before` from its start on, `after` from minute `changeAt` on. */
interface DayOffsets {
  readonly before: number;
  readonly after: number;
  readonly changeAt: number;
}

/** A time zone's wall clock. Moments and local times are whole minutes: since 1970 in UTC, and the same plus the offset. */
export class TimeZone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #days = new Map<number, DayOffsets>();

  /** Throws a RangeError if the name is not one that `Intl` knows. */
  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  }

  offsetAt(minute: number): number {
    if (this.name === "UTC") return 0;
    const { before, after, changeAt } = this.#offsetsOfDay(Math.floor(minute / minutesPerDay));
    return minute < changeAt ? before : after;
  }

  localMinute(minute: number): number {
    return minute + this.offsetAt(minute);
  }

  /** The other moment at which the clock shows the same as at `minute`, if it was set back in between. */
  findTwin(minute: number): number | undefined {
    const offset = this.offsetAt(minute);
    const local = minute + offset;
    // No zone was ever set back by more than a day, so the twin's offset is in force within a day of here.
    for (const other of [this.offsetAt(minute - minutesPerDay), this.offsetAt(minute + minutesPerDay)]) {
      if (other !== offset && this.offsetAt(local - other) === other) return local - other;
    }
    return undefined;
  }

  #offsetsOfDay(day: number): DayOffsets {
    const known = this.#days.get(day);
    if (known) return known;
    if (this.#days.size >= maxCachedDays) this.#days.clear();
    const found = this.#findOffsets(day * minutesPerDay);
    this.#days.set(day, found);
    return found;
  }

  #findOffsets(dayStart: number): DayOffsets {
    const before = this.#askOffset(dayStart);
    const after = this.#askOffset(dayStart + minutesPerDay - 1);
    let low = dayStart;
    let high = before === after ? dayStart : dayStart + minutesPerDay - 1;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#askOffset(middle) === before) low = middle;
      else high = middle;
    }
    return { before, after, changeAt: high };
  }

  #askOffset(minute: number): number {
    const parts = this.#format.formatToParts(minute * msPerMinute);
    const text = parts.find((part) => part.type === "timeZoneName")?.value ?? "";
    const [, sign, hours, minutes] = /^GMT([+-])(\d+):(\d+)/.exec(text) ?? [];
    if (!sign) return 0;
    return (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  }
}

const zonesByName = new Map<string, TimeZone>();

/** The zone of that name, always the same object, so that what it learnt of the calendar is shared. */
export function findTimeZone(name: string): TimeZone {
  const known = zonesByName.get(name);
  if (known) return known;
  const zone = new TimeZone(name);
  zonesByName.set(name, zone);
  return zone;
}

export function isTimeZone(name: string): boolean {
  try {
    return findTimeZone(name).name === name;
  } catch {
    return false;
  }
}

/** A moment as the zone's clock shows it: `2026-03-29T03:00:00+02:00`. */
export function formatLocalTime(zone: TimeZone, instantMs: number): string {
  const offset = zone.offsetAt(Math.floor(instantMs / msPerMinute));
  const local = new Date(instantMs + offset * msPerMinute).toISOString().slice(0, 19);
  const size = Math.abs(offset);
  const pad = (value: number): string => String(value).padStart(2, "0");
  return `${local}${offset < 0 ? "-" : "+"}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
