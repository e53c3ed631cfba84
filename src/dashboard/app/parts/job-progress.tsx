import type { JSX } from "preact";
import type { Progress } from "../../contract.ts";
import { State } from "./state.tsx";

export function JobProgress({ progress }: { readonly progress: Progress }): JSX.Element {
  const { percent, message } = progress;
  const text = [percent === null ? null : `${Math.round(percent)} %`, message]
    .filter((part) => part !== null)
    .join(" · ");
  return (
    <span class="job-progress">
      <State of="running" label={text || undefined} />
      {percent !== null && <progress class="bar" max={100} value={percent} aria-label="Progress" />}
    </span>
  );
}
