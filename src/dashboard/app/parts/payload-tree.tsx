import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { redactedText } from "../../contract.ts";
import { Icon } from "./icon.tsx";

const openLevels = 2;
const longList = 100;

/** JSON as a tree that folds; everything is text, whatever it contains. */
export function PayloadTree({ value, label }: { readonly value: unknown; readonly label: string }): JSX.Element {
  return (
    <div class="tree mono" role="group" aria-label={label}>
      <Node value={value} level={0} />
    </div>
  );
}

interface NodeProps {
  readonly name?: string;
  readonly value: unknown;
  readonly level: number;
}

function Node({ name, value, level }: NodeProps): JSX.Element {
  const entries = entriesOf(value);
  const [isOpen, setOpen] = useState(level < openLevels && (entries?.length ?? 0) <= 20);
  const [shown, setShown] = useState(longList);
  const key = name !== undefined && <span class="tree-key">{name}: </span>;
  if (!entries || entries.length === 0) {
    return (
      <div class="tree-line">
        {key}
        <Leaf value={value} />
      </div>
    );
  }
  return (
    <div class="tree-node">
      <button type="button" class="tree-toggle" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "chevron"} />
        {key}
        <span class="faint">{isOpen ? (Array.isArray(value) ? "[" : "{") : preview(value, entries)}</span>
      </button>
      {isOpen && (
        <>
          <div class="tree-children">
            {entries.slice(0, shown).map(([entry, inner]) => (
              <Node key={entry} name={entry} value={inner} level={level + 1} />
            ))}
            {entries.length > shown && (
              <button type="button" class="button is-link" onClick={() => setShown(shown + 10 * longList)}>
                {entries.length - shown} more
              </button>
            )}
          </div>
          <div class="faint tree-close">{Array.isArray(value) ? "]" : "}"}</div>
        </>
      )}
    </div>
  );
}

function Leaf({ value }: { readonly value: unknown }): JSX.Element {
  if (value === redactedText)
    return (
      <span class="faint" title="Hidden by the server">
        {redactedText}
      </span>
    );
  if (typeof value === "string") return <span class="tree-string">{JSON.stringify(value)}</span>;
  if (typeof value === "number") return <span class="tree-number">{String(value)}</span>;
  return <span class="tree-other">{JSON.stringify(value)}</span>;
}

function entriesOf(value: unknown): [string, unknown][] | undefined {
  return typeof value === "object" && value !== null ? Object.entries(value) : undefined;
}

/** `{ tenantId, lines: Array(3) … }`, in one line. */
function preview(value: unknown, entries: readonly [string, unknown][]): string {
  if (Array.isArray(value)) return `Array(${value.length})`;
  const names = entries.slice(0, 4).map(([name, inner]) => `${name}: ${brief(inner)}`);
  return `{ ${names.join(", ")}${entries.length > names.length ? ", …" : ""} }`;
}

function brief(value: unknown): string {
  if (Array.isArray(value)) return `Array(${value.length})`;
  if (typeof value === "object" && value !== null) return "{…}";
  const text = JSON.stringify(value) ?? "";
  return text.length > 24 ? `${text.slice(0, 22)}…` : text;
}
