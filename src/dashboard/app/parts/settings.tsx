import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { messageOf, signOut } from "../core/api.ts";
import { setPreference, usePreference } from "../core/preferences.ts";
import { useSession } from "../core/session.ts";
import { Icon } from "./icon.tsx";
import { tell } from "./toasts.tsx";

/** Theme, time zone, keyboard help and the way out. */
export function Settings({ onKeys }: { readonly onKeys: () => void }): JSX.Element {
  const session = useSession();
  const theme = usePreference("theme");
  const zone = usePreference("zone");
  const [isOpen, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const close = (event: Event): void => {
      const isEscape = event instanceof KeyboardEvent && event.key === "Escape";
      if (isEscape || (event.type === "pointerdown" && !root.current?.contains(event.target as Node))) setOpen(false);
    };
    document.addEventListener("pointerdown", close);
    document.addEventListener("keydown", close);
    return () => {
      document.removeEventListener("pointerdown", close);
      document.removeEventListener("keydown", close);
    };
  }, [isOpen]);
  const leave = async (): Promise<void> => {
    try {
      await signOut();
      window.location.reload();
    } catch (error) {
      tell(messageOf(error), { isBad: true });
    }
  };
  return (
    <div class="menu" ref={root}>
      <button
        type="button"
        class="button is-quiet is-icon"
        aria-label="Settings"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        <Icon name={theme === "dark" ? "moon" : theme === "light" ? "sun" : "half"} />
      </button>
      {isOpen && (
        <div class="menu-list settings" role="group" aria-label="Settings">
          <Choice
            label="Theme"
            value={theme}
            options={{ system: "System", light: "Light", dark: "Dark" }}
            onChange={(value) => setPreference("theme", value)}
          />
          <Choice
            label="Times"
            value={zone}
            options={{ local: "Local", utc: "UTC" }}
            onChange={(value) => setPreference("zone", value)}
          />
          <button
            type="button"
            onClick={() => {
              setOpen(false);
              onKeys();
            }}
          >
            Keyboard <kbd>?</kbd>
          </button>
          {session.user !== null && <p class="faint">Signed in as {session.user}</p>}
          {session.isReadOnly && <p class="faint">Read-only: nothing can be changed here.</p>}
          <p class="faint">Hathi {session.version}</p>
          {session.canSignOut && (
            <button type="button" onClick={() => void leave()}>
              Sign out
            </button>
          )}
        </div>
      )}
    </div>
  );
}

interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: Readonly<Record<Value, string>>;
  readonly onChange: (value: Value) => void;
}

function Choice<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>): JSX.Element {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {(Object.entries(options) as [Value, string][]).map(([option, name]) => (
        <label key={option} class={option === value ? "is-chosen" : undefined}>
          <input type="radio" name={label} checked={option === value} onChange={() => onChange(option)} />
          {name}
        </label>
      ))}
    </fieldset>
  );
}
