import { messageOf } from "../errors.ts";
import { monotonicMs } from "../util/timers.ts";
import type { PoolMeter } from "./pool-meter.ts";

export interface Health {
  readonly ok: boolean;
  /** Why, in one sentence. */
  readonly message: string;
}

/** A claim that gets no answer is given up after half of this. */
const slackMs = 60_000;

/** Live: no pool died, and the loops of those that run turn. An unreachable database is no reason to restart. */
export function judgeLive(pools: readonly PoolMeter[], now: number = monotonicMs()): Health {
  for (const { fatal, pool, isStopping, hasEnded } of pools) {
    if (fatal !== undefined) return bad(`The worker cannot go on: ${messageOf(fatal)}`);
    const silentMs = now - pool.turnedAt();
    if (!isStopping && !hasEnded && silentMs > pool.pollInterval + slackMs)
      return bad(`The worker has not looked for jobs for ${Math.round(silentMs / 1000)} s.`);
  }
  return { ok: true, message: "The worker is alive." };
}

/** Ready: every pool's last claim succeeded, and none is stopping. */
export function judgeReady(pools: readonly PoolMeter[]): Health {
  const live = judgeLive(pools);
  if (!live.ok) return live;
  if (pools.length === 0) return bad("No worker has started yet.");
  for (const { lastClaimSucceeded, isStopping, hasEnded } of pools) {
    if (isStopping || hasEnded) return bad("The worker is stopping.");
    if (lastClaimSucceeded === undefined) return bad("The worker has not claimed jobs yet.");
    if (!lastClaimSucceeded) return bad("The last claim failed; the database may be unreachable.");
  }
  return { ok: true, message: "The last claim succeeded." };
}

function bad(message: string): Health {
  return { ok: false, message };
}
