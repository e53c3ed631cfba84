import { formatSpan } from "../util/time-span.ts";
import type { VacuumHolderRow } from "./statements/diagnose.ts";

/** Seconds after which it is worth a warning that vacuum is held back. */
export const vacuumPatienceSeconds = 300;

/** Where PostgreSQL does not say since when vacuum is held back, so many transactions count as a second. */
const transactionsPerSecond = 100;

export function heldSeconds({ seconds, transactions }: VacuumHolderRow): number {
  return seconds ?? (transactions ?? 0) / transactionsPerSecond;
}

/** Who it is, since when, and how to end it. */
export function describeHolder({ what, seconds, transactions, remedy }: VacuumHolderRow): string {
  const age = [
    ...(seconds === null ? [] : [formatSpan(seconds * 1000)]),
    ...(transactions === null ? [] : [`${transactions.toLocaleString("en-GB")} transactions`]),
  ].join(", ");
  return `${what}, ${age} old. To end it: ${remedy}`;
}
