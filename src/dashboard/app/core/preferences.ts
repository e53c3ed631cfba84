import { useEffect, useState } from "preact/hooks";
import type { Zone } from "./format.ts";

interface Preferences {
  theme: "system" | "light" | "dark";
  zone: Zone;
}

const allowed: { readonly [Name in keyof Preferences]: readonly Preferences[Name][] } = {
  theme: ["system", "light", "dark"],
  zone: ["local", "utc"],
};
const listeners = new Set<() => void>();
const current: Preferences = { theme: read("theme"), zone: read("zone") };
applyTheme();

/** Storage may be forbidden; then a choice lasts as long as the page. */
function read<Name extends keyof Preferences>(name: Name): Preferences[Name] {
  let kept: string | null = null;
  try {
    kept = window.localStorage.getItem(`hathi.${name}`);
  } catch {}
  return allowed[name].find((value) => value === kept) ?? allowed[name][0]!;
}

export function setPreference<Name extends keyof Preferences>(name: Name, value: Preferences[Name]): void {
  current[name] = value;
  try {
    window.localStorage.setItem(`hathi.${name}`, value);
  } catch {}
  applyTheme();
  for (const listener of listeners) listener();
}

export function usePreference<Name extends keyof Preferences>(name: Name): Preferences[Name] {
  const [value, setValue] = useState(current[name]);
  useEffect(() => {
    const listener = (): void => setValue(current[name]);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, [name]);
  return value;
}

function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (current.theme === "system") delete dataset.theme;
  else dataset.theme = current.theme;
}
