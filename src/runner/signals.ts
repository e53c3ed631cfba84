import type { Emit } from "../events.ts";
import type { Logger } from "../logger.ts";
import type { WorkerPool } from "../worker.ts";

const signals: readonly NodeJS.Signals[] = ["SIGUSR2", "SIGINT", "SIGTERM", "SIGHUP", "SIGABRT"];
/** A second signal within this time is taken for an echo of the first (terminals and process managers send several). */
const echoMs = 5_000;

/** How long a drained process may take to end by itself. */
const tidyMs = 1_000;

interface Member {
  readonly pool: WorkerPool;
  readonly emit: Emit;
  readonly logger: Logger;
}

type State = "waiting" | "graceful" | "forceful";

const members = new Set<Member>();
let state: State = "waiting";
let since = 0;

/** Stops the pool when the process is told to stop: gracefully at first, at once if told again. One set of handlers for all. */
export function stopOnSignals(pool: WorkerPool, emit: Emit, logger: Logger): void {
  if (state !== "waiting") {
    throw new Error("System is shutting down, so new workers cannot be started.");
  }
  const member: Member = { pool, emit, logger };
  if (members.size === 0) attach();
  members.add(member);
  const leave = (): void => {
    members.delete(member);
    if (members.size === 0 && state === "waiting") detach();
  };
  pool.promise.then(leave, leave);
}

function attach(): void {
  for (const signal of signals) process.on(signal, onSignal);
  process.stdout.on("error", onBrokenPipe);
  process.stderr.on("error", onBrokenPipe);
}

function detach(): void {
  for (const signal of signals) process.off(signal, onSignal);
  process.stdout.off("error", onBrokenPipe);
  process.stderr.off("error", onBrokenPipe);
}

function onBrokenPipe(): void {
  onSignal("SIGPIPE");
}

function onSignal(signal: NodeJS.Signals): void {
  if (state !== "waiting" && Date.now() - since < echoMs) return;
  since = Date.now();
  const isFirst = state === "waiting";
  state = isFirst ? "graceful" : "forceful";
  const name = isFirst ? "gracefulShutdown" : "forcefulShutdown";
  const pools = [...members];
  for (const { emit, logger } of pools) {
    emit(name, { signal });
    if (isFirst) {
      const ignored = `(all termination signals will be ignored for the next ${echoMs / 1000} seconds)`;
      logger.info(`Received '${signal}'; attempting global graceful shutdown... ${ignored}`);
    } else {
      logger.error(`Received '${signal}' again; attempting global forceful shutdown...`);
    }
  }
  const stops = pools.map(({ pool }) =>
    isFirst
      ? pool.gracefulShutdown(`Graceful worker shutdown due to ${signal}`)
      : pool.forcefulShutdown(`Forced worker shutdown due to ${signal}`),
  );
  void Promise.allSettled([...stops, ...pools.map(({ pool }) => pool.promise)]).then((results) => {
    detach();
    endProcess(
      signal,
      results.some(({ status }) => status === "rejected"),
    );
  });
}

/** What the signal would have done had we not caught it; but a clean drain on SIGTERM is a success. */
function endProcess(signal: NodeJS.Signals, hasFailed: boolean): void {
  if (process.listenerCount(signal) > 0) {
    state = "waiting";
    return; // somebody else decides when this process ends
  }
  if (!hasFailed && (signal === "SIGTERM" || process.pid === 1)) {
    // By itself, when connections are closed and whoever awaited the runner has tidied up; but soon.
    process.exitCode ??= 0;
    setTimeout(() => process.exit(), tidyMs).unref();
    return;
  }
  process.kill(process.pid, signal === "SIGPIPE" ? "SIGTERM" : signal);
}
