import type { JSX } from "preact";
import type { TimelineEntry } from "../../contract.ts";
import { formatDuration } from "../core/format.ts";
import { Link } from "../core/router.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { FoldedStack, Stack } from "./stack.tsx";
import { lookOf } from "./state.tsx";
import { Clock } from "./time.tsx";

const icons: Readonly<Record<string, IconName>> = {
  added: "plus",
  started: "running",
  locked: "running",
  due: "scheduled",
  action: "person",
};

/** What happened to a job, oldest first. */
export function Timeline({ entries }: { readonly entries: readonly TimelineEntry[] }): JSX.Element {
  return (
    <ol class="timeline">
      {entries.map((entry, index) => (
        <Entry key={`${entry.at} ${entry.kind} ${index}`} entry={entry} isLast={index === entries.length - 1} />
      ))}
    </ol>
  );
}

function Entry({ entry, isLast }: { readonly entry: TimelineEntry; readonly isLast: boolean }): JSX.Element {
  const look = lookOf(entry.kind);
  const tone = icons[entry.kind] ? (entry.kind === "locked" ? "active" : undefined) : look.tone;
  return (
    <li data-tone={tone}>
      <Icon name={icons[entry.kind] ?? look.icon} />
      <Clock at={entry.at} />
      <span class="what">
        <span>{entry.message}</span>
        {entry.attempt !== null && <span class="faint">attempt {entry.attempt}</span>}
        {entry.waitMs !== null && <span class="faint">waited {formatDuration(entry.waitMs)}</span>}
        {entry.runMs !== null && <span class="faint">ran {formatDuration(entry.runMs)}</span>}
        {entry.worker !== null && <span class="faint mono">{entry.worker}</span>}
        {entry.fingerprint !== null && <Link to={`/errors/${entry.fingerprint}`}>All errors like this</Link>}
      </span>
      {entry.error !== null && !entry.message.includes(entry.error) && (
        <details open={isLast}>
          <summary class="stack-summary">The whole error</summary>
          <Stack text={entry.error} />
        </details>
      )}
      {entry.stack !== null && <FoldedStack stack={entry.stack} isOpen={isLast} />}
    </li>
  );
}
