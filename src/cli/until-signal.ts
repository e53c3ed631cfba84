import { clearInterval, setInterval } from "../util/timers.ts";

/** Resolves when the process is asked to stop, and keeps it alive until then. */
export function untilSignal(): Promise<void> {
  return new Promise((resolve) => {
    const alive = setInterval(() => undefined, 2 ** 30);
    const stop = (): void => {
      clearInterval(alive);
      for (const signal of signals) process.off(signal, stop);
      resolve();
    };
    for (const signal of signals) process.on(signal, stop);
  });
}

const signals = ["SIGINT", "SIGTERM"] as const;
