import type { JSX } from "preact";
import type { BoundedCount } from "../../contract.ts";
import { formatDuration, formatNumber } from "../core/format.ts";

export function formatCount({ count, isMore }: BoundedCount): string {
  return `${formatNumber(count)}${isMore ? "+" : ""}`;
}

/** A count, faint if it is zero; a link to the jobs behind it is made by who shows it. */
export function Amount({ of }: { readonly of: BoundedCount }): JSX.Element {
  return <span class={of.count === 0 ? "faint" : undefined}>{formatCount(of)}</span>;
}

export function Duration({ ms }: { readonly ms: number | null }): JSX.Element {
  return ms === null ? <span class="faint">–</span> : <span>{formatDuration(ms)}</span>;
}
