import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";

interface FieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly problem?: string | undefined;
  readonly isWide?: boolean;
  readonly children: (ids: { readonly id: string; readonly "aria-describedby": string | undefined }) => JSX.Element;
}

export function Field({ label, hint, problem, isWide, children }: FieldProps): JSX.Element {
  const id = useId();
  const note = hint || problem ? `${id}-note` : undefined;
  return (
    <div class={`field ${isWide ? "is-wide" : ""}`}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": note })}
      {note && (
        <span id={note} class={problem ? "problem" : "hint"} role={problem ? "alert" : undefined}>
          {problem ?? hint}
        </span>
      )}
    </div>
  );
}

/** The value of a `datetime-local` field for a moment, in the browser's zone. */
export function localValue(at: Date): string {
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The moment that such a field shows; undefined if it is empty. */
export function momentOf(value: string): string | undefined {
  const at = new Date(value);
  return value === "" || Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
