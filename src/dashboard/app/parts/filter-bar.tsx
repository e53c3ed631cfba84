import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { changeQuery, go, usePlace } from "../core/router.tsx";
import { isRelative } from "../core/time-range.ts";
import { localValue, momentOf } from "./field.tsx";
import { Icon } from "./icon.tsx";

const pauseMs = 300;

/** The search field of a page that is not drawn yet is to have the focus. */
let isAwaited = false;

/** Goes to the page's own search field, or to that of the jobs. */
export function focusSearch(): void {
  const field = document.querySelector<HTMLInputElement>("input[data-search]");
  if (field) {
    field.focus();
    field.select();
    return;
  }
  isAwaited = true;
  go("/jobs");
}

/** A search field that is part of the address; `/` goes to it. */
export function SearchField({ name, label }: { readonly name: string; readonly label: string }): JSX.Element {
  const asked = usePlace().query.get(name) ?? "";
  const [text, setText] = useState(asked);
  const timer = useRef<number | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  // Before the next key is pressed, which belongs into the field.
  useLayoutEffect(() => {
    if (isAwaited) field.current?.focus();
    isAwaited = false;
    // What was not asked for yet does not belong to the next page.
    return () => window.clearTimeout(timer.current);
  }, []);
  // What was asked for here comes back while more is typed, and must not replace that.
  const applied = useRef(asked);
  useEffect(() => {
    if (asked !== applied.current) setText(asked);
    applied.current = asked;
  }, [asked]);
  const apply = (value: string): void => {
    window.clearTimeout(timer.current);
    applied.current = value.trim();
    go(changeQuery({ [name]: applied.current || undefined }), { replace: asked !== "" });
  };
  return (
    <div class="search" role="search">
      <Icon name="search" />
      <input
        ref={field}
        class="input"
        type="search"
        data-search
        aria-label={label}
        placeholder={label}
        value={text}
        onInput={(event) => {
          const { value } = event.currentTarget;
          setText(value);
          window.clearTimeout(timer.current);
          timer.current = window.setTimeout(() => apply(value), pauseMs);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply(event.currentTarget.value);
          if (event.key === "Escape") event.currentTarget.blur();
        }}
      />
      {text === "" && <kbd aria-hidden="true">/</kbd>}
    </div>
  );
}

interface TextFilterProps {
  readonly name: string;
  readonly label: string;
  /** Values to choose from; others may be typed. */
  readonly options?: readonly string[];
}

export function TextFilter({ name, label, options = [] }: TextFilterProps): JSX.Element {
  const asked = usePlace().query.get(name) ?? "";
  // Without a state of its own, a page that is drawn again during typing would put back what was asked before.
  const [text, setText] = useState(asked);
  useEffect(() => setText(asked), [asked]);
  const listId = `options-${name}`;
  return (
    <>
      <input
        class={`input filter ${asked === "" ? "" : "is-set"}`}
        aria-label={label}
        placeholder={label}
        list={options.length > 0 ? listId : undefined}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => go(changeQuery({ [name]: event.currentTarget.value.trim() || undefined }))}
      />
      {options.length > 0 && (
        <datalist id={listId}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </>
  );
}

interface SelectFilterProps {
  readonly name: string;
  readonly label: string;
  readonly options: Readonly<Record<string, string>>;
}

export function SelectFilter({ name, label, options }: SelectFilterProps): JSX.Element {
  const asked = usePlace().query.get(name) ?? "";
  return (
    <select
      class="select"
      aria-label={label}
      value={asked}
      onChange={(event) => go(changeQuery({ [name]: event.currentTarget.value || undefined }))}
    >
      {Object.entries(options).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </select>
  );
}

const ranges = {
  "": "Any time",
  "15m": "Last 15 minutes",
  "1h": "Last hour",
  "6h": "Last 6 hours",
  "1d": "Last day",
  "7d": "Last 7 days",
  between: "Between …",
};

/** From when and until when. */
export function TimeFilter({ label }: { readonly label: string }): JSX.Element {
  const { query } = usePlace();
  const since = query.get("since");
  const until = query.get("until");
  const isBetween = until !== null || (since !== null && !isRelative(since));
  const choose = (value: string): void => {
    const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
    go(changeQuery({ since: value === "between" ? hourAgo : value || undefined, until: undefined }));
  };
  return (
    <>
      <select
        class="select"
        aria-label={label}
        value={isBetween ? "between" : (since ?? "")}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {Object.entries(ranges).map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      {isBetween && (
        <>
          <Moment name="since" label="From" value={since} />
          <Moment name="until" label="Until" value={until} />
        </>
      )}
    </>
  );
}

function Moment({ name, label, value }: { name: string; label: string; value: string | null }): JSX.Element {
  const date = value === null ? undefined : new Date(value);
  return (
    <input
      class="input"
      type="datetime-local"
      aria-label={label}
      title={label}
      value={date && !Number.isNaN(date.getTime()) ? localValue(date).slice(0, 16) : ""}
      onChange={(event) => go(changeQuery({ [name]: momentOf(event.currentTarget.value) }))}
    />
  );
}

/** A filter that only a link sets; it can be taken off. */
export function FixedFilter({
  name,
  children,
}: {
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element | null {
  const { query } = usePlace();
  if (!query.get(name)) return null;
  return (
    <button type="button" class="button is-small" onClick={() => go(changeQuery({ [name]: undefined }))}>
      {children}
      <Icon name="close" />
      <span class="off-screen">Remove this filter</span>
    </button>
  );
}

/** Takes all filters off; shown if there are any. */
export function ClearFilters({ names }: { readonly names: readonly string[] }): JSX.Element | null {
  const { query } = usePlace();
  if (!names.some((name) => query.get(name))) return null;
  return (
    <button
      type="button"
      class="button is-quiet"
      onClick={() => go(changeQuery(Object.fromEntries(names.map((name) => [name, undefined]))))}
    >
      Clear
    </button>
  );
}
