import type { JSX } from "preact";
import { useNow } from "../core/clock.ts";
import { formatClock, formatExact, formatRelative } from "../core/format.ts";
import { usePreference } from "../core/preferences.ts";

/** "3 min ago", with the exact time on hover. */
export function Ago({ at }: { readonly at: string | null | undefined }): JSX.Element {
  const now = useNow();
  const zone = usePreference("zone");
  if (!at) return <span class="faint">–</span>;
  const date = new Date(at);
  return (
    <time dateTime={at} title={formatExact(date, zone)}>
      {formatRelative(date.getTime(), now)}
    </time>
  );
}

/** "09:14:02.120", with how long ago on hover. */
export function Clock({ at }: { readonly at: string }): JSX.Element {
  const now = useNow();
  const zone = usePreference("zone");
  const date = new Date(at);
  return (
    <time dateTime={at} title={`${formatExact(date, zone)}, ${formatRelative(date.getTime(), now)}`} class="mono">
      {formatClock(date, zone, now)}
    </time>
  );
}
