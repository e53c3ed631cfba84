const signals: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

export interface SignalWatch {
  /** From now on a worker decides what a signal means. */
  handOver(): void;
}

/**
 * Before a worker runs, a signal ends the process at once. Afterwards the worker drains, and because we listen too, it leaves
 * the process alive: the exit code is ours to give, and the embedded server ours to let go.
 */
export function deferToWorker(release: () => Promise<void>): SignalWatch {
  let hasWorker = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (hasWorker) {
      // Stopping by hand or by a supervisor is no failure; a closed terminal has its own code.
      if (signal === "SIGHUP") process.exitCode = 129;
      return;
    }
    const code = signal === "SIGINT" ? 130 : signal === "SIGTERM" ? 143 : 129;
    void release().finally(() => process.exit(code));
  };
  for (const signal of signals) process.on(signal, onSignal);
  return {
    handOver: () => {
      hasWorker = true;
    },
  };
}
