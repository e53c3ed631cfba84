import { useEffect, useState } from "preact/hooks";

/** The server's time minus ours, in milliseconds: what "in 2 s" means is the database's business. */
let skew = 0;
const listeners = new Set<() => void>();
let timer: number | undefined;

export function setServerTime(at: number): void {
  skew = at - Date.now();
}

export function serverNow(): number {
  return Date.now() + skew;
}

/** The server's time, once a second while the page is visible; one timer for all. */
export function useNow(): number {
  const [now, setNow] = useState(serverNow);
  useEffect(() => {
    const tick = (): void => setNow(serverNow());
    listeners.add(tick);
    timer ??= window.setInterval(() => {
      if (document.hidden) return;
      for (const listener of listeners) listener();
    }, 1_000);
    return () => {
      listeners.delete(tick);
      if (listeners.size > 0) return;
      window.clearInterval(timer);
      timer = undefined;
    };
  }, []);
  return now;
}
