import type { JSX } from "preact";
import { type Span, spans } from "../../contract.ts";
import { changeQuery, go, usePlace } from "../core/router.tsx";

const names: Readonly<Record<Span, string>> = {
  "15m": "Last 15 minutes",
  "1h": "Last hour",
  "3h": "Last 3 hours",
  "1d": "Last day",
  "3d": "Last 3 days",
  "30d": "Last 30 days",
};

export function useSpan(usual: Span = "1h"): Span {
  const asked = usePlace().query.get("span");
  return spans.find((span) => span === asked) ?? usual;
}

/** How far back the page looks; part of its address. */
export function SpanSelect({ usual = "1h" }: { readonly usual?: Span }): JSX.Element {
  const span = useSpan(usual);
  return (
    <select
      class="select"
      aria-label="How far back"
      value={span}
      onChange={(event) => {
        const chosen = event.currentTarget.value;
        go(changeQuery({ span: chosen === usual ? undefined : chosen }));
      }}
    >
      {spans.map((option) => (
        <option key={option} value={option}>
          {names[option]}
        </option>
      ))}
    </select>
  );
}
