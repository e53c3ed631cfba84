/** What is expected of a number, for messages; undefined if the value is such a number. */
export function expectWholeNumber(value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): string | undefined {
  if (typeof value === "number" && Number.isInteger(value) && value >= least && value <= most) return undefined;
  return `a whole number from ${least} ${most === Number.MAX_SAFE_INTEGER ? "up" : `to ${most}`}`;
}
