import type { ClientBase, PoolClient } from "pg";
import type { Logger } from "../logger.ts";
import { sleep } from "../util/sleep.ts";
import { findBlockers, type LockHolder, listHolders } from "./lock-holders.ts";
import type { IndexStatement } from "./split-indexes.ts";
import { ask } from "./statement.ts";
import { type BuildProgress, readBuildProgress } from "./statements/migration.ts";

/** Lends a connection for as long as the callback runs. */
export type Connect = (callback: (client: PoolClient) => Promise<void>) => Promise<void>;

export interface WatchBuildOptions {
  /** The connection that is about to build. */
  readonly client: ClientBase;
  /** Its server process; undefined if a pooler hides it. */
  readonly pid: number | undefined;
  readonly index: IndexStatement;
  readonly logger: Logger | undefined;
  readonly connect: Connect | undefined;
}

const everyMs = 1_000;

/** Logs from a second connection how far a build is, what it waits for and who holds it. Nothing depends on it. */
export function watchBuild({ client, pid, index, logger, connect }: WatchBuildOptions): { stop(): void } {
  const stop = new AbortController();
  if (logger && connect && pid !== undefined) {
    const tell = teller(index, logger);
    connect(async (second) => {
      // The pool may have had no second connection until the build was over, or lend the one that builds.
      while (second !== client && !stop.signal.aborted) {
        const blockers = await findBlockers(second, pid);
        const [progress] = await ask(second, readBuildProgress, { pid });
        if (!stop.signal.aborted) tell(blockers, progress);
        await sleep(everyMs, stop.signal);
      }
    }).catch(() => undefined); // the build itself reports a lost database
  }
  return { stop: () => stop.abort() };
}

/** Logs what has changed: another phase, ten per cent more, other transactions in the way. */
function teller(
  { name }: IndexStatement,
  logger: Logger,
): (blockers: LockHolder[], progress: BuildProgress | undefined) => void {
  let told = "";
  return (blockers, progress) => {
    const state = `${blockers.map(({ pid }) => pid).join()} ${progress?.phase} ${Math.floor((progress?.percent ?? 0) / 10)}`;
    if (state === told) return;
    told = state;
    if (blockers.length > 0)
      logger.info(`Index ${name} waits for the end of other transactions: ${listHolders(blockers)}.`);
    else if (progress) logger.info(`Index ${name}: ${progress.phase}, ${progress.percent} %.`);
  };
}
