import type { Emit } from "../events.ts";
import type { Logger } from "../logger.ts";
import { monotonicMs, setTimeout } from "../util/timers.ts";
import type { Pool } from "../worker/pool.ts";

const signals: readonly NodeJS.Signals[] = ["SIGUSR2", "SIGINT", "SIGTERM", "SIGHUP", "SIGABRT"];
/** A second signal within this time is taken for an echo of the first (terminals and process managers send several). */
const echoMs = 5_000;

/** How long a drained process may take to end by itself. */
const tidyMs = 1_000;

/** Running jobs that are named when a shutdown begins. */
const namedJobs = 5;

interface Member {
  readonly pool: Pool;
  readonly emit: Emit;
  readonly logger: Logger;
  company?: Company;
}

/** The forwarders beside a pool: the process ends only after them. */
interface Company {
  readonly ended: Promise<unknown>;
  readonly forwarding: { readonly isIdle: boolean; kill(reason: string): void };
}

type State = "waiting" | "graceful" | "forceful";

const members = new Set<Member>();
let state: State = "waiting";
let since = 0;
/** When it was last said that a signal is ignored. */
let toldAt = -Infinity;

/** Stops the pool on a signal: gracefully at first, at once on a second one. One set of handlers for all pools. */
export function stopOnSignals(pool: Pool, emit: Emit, logger: Logger): void {
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
  // By then `attendSignals` was called, if it is at all.
  const end = (): Promise<unknown> => endOf(member).then(leave, leave);
  pool.promise.then(end, end);
}

/** Makes signals wait for the forwarders beside this pool too; a second signal ends both at once. */
export function attendSignals(pool: Pool, company: Company): void {
  for (const member of members) if (member.pool === pool) member.company = company;
}

function endOf({ pool, company }: Member): Promise<unknown> {
  return company?.ended ?? pool.promise;
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
  const now = monotonicMs();
  if (state !== "waiting" && now - since < echoMs) {
    ignore(signal, now);
    return;
  }
  since = now;
  toldAt = -Infinity;
  const isFirst = state === "waiting";
  state = isFirst ? "graceful" : "forceful";
  const name = isFirst ? "gracefulShutdown" : "forcefulShutdown";
  const pools = [...members];
  for (const { emit, logger, pool, company } of pools) {
    emit(name, { signal });
    if (isFirst) {
      const ignored = `(all termination signals will be ignored for the next ${echoMs / 1000} seconds)`;
      logger.info(`Received '${signal}'; attempting global graceful shutdown... ${ignored}`);
      logger.info(describeWait(pool, signal, company));
    } else {
      logger.error(`Received '${signal}' again; attempting global forceful shutdown...`);
      company?.forwarding.kill(`Forced worker shutdown due to ${signal}`);
    }
  }
  const stops = pools.map(({ pool }) =>
    isFirst
      ? pool.gracefulShutdown(`Graceful worker shutdown due to ${signal}`, "signal")
      : pool.forcefulShutdown(`Forced worker shutdown due to ${signal}`, "signal"),
  );
  void Promise.allSettled([...stops, ...pools.map(endOf)]).then((results) => {
    detach();
    endProcess(
      signal,
      results.some(({ status }) => status === "rejected"),
    );
  });
}

/** What a shutdown waits for, and the way out for those who cannot wait. */
function describeWait(pool: Pool, signal: NodeJS.Signals, company: Company | undefined): string {
  const jobs = pool._workers.map((worker) => worker.getActiveJob()).filter((job) => job !== null);
  if (jobs.length === 0 && company?.forwarding.isIdle === false) return "Waiting for jobs that are being forwarded.";
  if (jobs.length === 0) return "No job is running.";
  const names = jobs.slice(0, namedJobs).map(({ id, task_identifier }) => `${id} (${task_identifier})`);
  const others = jobs.length > namedJobs ? ` and ${jobs.length - namedJobs} more` : "";
  return (
    `Waiting for ${jobs.length === 1 ? "job" : `${jobs.length} jobs:`} ${names.join(", ")}${others}. ` +
    `To stop at once, ${send(signal)} again after ${echoMs / 1000} seconds: what still runs then fails and is tried again later.`
  );
}

/** A repeated signal changes nothing, but is logged for whoever sent it, unless the output is closed. */
function ignore(signal: NodeJS.Signals, now: number): void {
  if (signal === "SIGPIPE" || now - toldAt < 1_000) return;
  toldAt = now;
  const inSeconds = Math.ceil((echoMs - (now - since)) / 1000);
  const sentence =
    state === "forceful"
      ? `Ignored '${signal}': the worker is stopping at once already.`
      : `Ignored '${signal}': it came so soon after the last one that it may be an echo. ` +
        `To stop at once, ${send(signal)} again in ${inSeconds} s.`;
  for (const { logger } of members) logger.warn(sentence);
}

function send(signal: NodeJS.Signals): string {
  return signal === "SIGINT" ? "press Ctrl-C" : `send ${signal}`;
}

/** What the signal would have done had we not caught it; but a clean drain on SIGTERM is a success. */
function endProcess(signal: NodeJS.Signals, hasFailed: boolean): void {
  if (process.listenerCount(signal) > 0) {
    state = "waiting";
    return; // another handler decides when this process ends
  }
  if (!hasFailed && (signal === "SIGTERM" || process.pid === 1)) {
    // By itself, when connections are closed and whoever awaited the runner has tidied up; but soon.
    process.exitCode ??= 0;
    setTimeout(() => process.exit(), tidyMs).unref();
    return;
  }
  process.kill(process.pid, signal === "SIGPIPE" ? "SIGTERM" : signal);
}
