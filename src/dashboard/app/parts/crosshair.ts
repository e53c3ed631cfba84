import { useEffect, useState } from "preact/hooks";

/** The moment under the pointer, in seconds since 1970: all charts of a page show it. */
let current: number | undefined;
const listeners = new Set<(at: number | undefined) => void>();

export function pointAt(at: number | undefined): void {
  if (at === current) return;
  current = at;
  for (const listener of listeners) listener(at);
}

export function useCrosshair(): number | undefined {
  const [at, setAt] = useState(current);
  useEffect(() => {
    listeners.add(setAt);
    return () => {
      listeners.delete(setAt);
    };
  }, []);
  return at;
}
