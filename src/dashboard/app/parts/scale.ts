/** The least round number that is not below the value, of 1, 2, 2.5 and 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 2.5, 5, 10].find((step) => value <= step * power * 1.000_001)!;
  return step * power;
}

const second = 1;
const minute = 60;
const hour = 3_600;
const day = 86_400;
const steps = [
  second,
  5,
  15,
  30,
  minute,
  2 * minute,
  5 * minute,
  10 * minute,
  15 * minute,
  30 * minute,
  hour,
  2 * hour,
  3 * hour,
  6 * hour,
  12 * hour,
  day,
  2 * day,
  5 * day,
  7 * day,
];

/** Round moments between two, in seconds since 1970; `offset` moves them to the viewer's midnight. */
export function timeTicks(from: number, to: number, most: number, offset: number): number[] {
  const step = steps.find((step) => (to - from) / step <= most) ?? 30 * day;
  const ticks: number[] = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) ticks.push(at);
  return ticks;
}

/** A line through the points, with a gap where there is none. A point between two gaps is drawn as a dot. */
export function linePath(xs: readonly number[], ys: readonly (number | null)[]): string {
  let path = "";
  ys.forEach((y, index) => {
    if (y === null) return;
    const isFirst = index === 0 || ys[index - 1] === null;
    const isAlone = isFirst && (ys[index + 1] ?? null) === null;
    path += `${isFirst ? "M" : "L"}${xs[index]!.toFixed(1)} ${y.toFixed(1)}${isAlone ? "h.1" : ""}`;
  });
  return path;
}

/** The same closed at the bottom. */
export function areaPath(xs: readonly number[], ys: readonly (number | null)[], bottom: number): string {
  let path = "";
  let start: number | undefined;
  ys.forEach((y, index) => {
    if (y === null) return;
    if (start === undefined) {
      start = xs[index]!;
      path += `M${start.toFixed(1)} ${bottom}`;
    }
    path += `L${xs[index]!.toFixed(1)} ${y.toFixed(1)}`;
    if ((ys[index + 1] ?? null) === null) {
      path += `V${bottom}Z`;
      start = undefined;
    }
  });
  return path;
}
