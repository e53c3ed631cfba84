import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
  readonly undo: (() => void) | undefined;
}

let toasts: readonly Toast[] = [];
let nextId = 1;
let show: (toasts: readonly Toast[]) => void = () => undefined;

/** Says how an action ended. Failures stay until they are closed. */
export function tell(
  text: string,
  { isBad = false, undo }: { isBad?: boolean; undo?: (() => void) | undefined } = {},
): void {
  const toast = { id: nextId++, text, isBad, undo };
  change([...toasts.slice(-2), toast]);
  if (!isBad) window.setTimeout(() => remove(toast.id), undo ? 10_000 : 5_000);
}

function remove(id: number): void {
  change(toasts.filter((toast) => toast.id !== id));
}

function change(next: readonly Toast[]): void {
  toasts = next;
  show(next);
}

export function Toasts(): JSX.Element {
  const [shown, setShown] = useState(toasts);
  useEffect(() => {
    show = setShown;
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, isBad, undo }) => (
        <div key={id} class={`toast ${isBad ? "is-bad" : ""}`}>
          <Icon name={isBad ? "warning" : "succeeded"} />
          <span class="wrap">{text}</span>
          {undo && (
            <Button
              small
              onClick={() => {
                remove(id);
                undo();
              }}
            >
              Undo
            </Button>
          )}
          <Button look="quiet" small icon="close" label="Close" onClick={() => remove(id)} />
        </div>
      ))}
    </div>
  );
}
