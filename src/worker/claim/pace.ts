/** How many jobs a pool may hold ahead at the most, whatever their speed. */
const maxAhead = 2_000;
/** How many bytes of payload it may hold ahead. */
const maxBytesAhead = 2 * 1024 * 1024;
/** What is held ahead should be started within this time, or it would be better off with another process. */
export const horizonMs = 25;
/**
 * And it should have started within half of the time for which it may be held, going by how many held jobs were started lately: a process that shares
 * its processor with many others seldom gets to run.
 */
const startWithinMs = 100;
/** The first runs say little: their code is not compiled yet. So the shortest of them counts. */
const coldJobs = 5;
/**
 * A job that did not wait counts for at most so many times what jobs took before, however long it had no processor. If jobs really compute
 * for long now, some twenty of them show it.
 */
const maxGrowth = 10;
const minJobMs = 0.01;
/** After jobs had to be returned because nothing moved, claim only for free slots for a while. */
const restAfterStallMs = 1_000;
/** After jobs had to be returned that waited for their queue, take one job per queue for a while. */
const restAfterSlowQueueMs = 1_000;

/**
 * Says how many jobs to claim beyond the free slots: as many as the pool will start within a moment, judging by how long jobs
 * have taken. Slow jobs are never hoarded; trivial jobs never wait for the database.
 */
export class Pace {
  #jobMs: number | undefined;
  #jobBytes = 0;
  #seen = 0;
  #stalledUntil = 0;
  #slowQueueUntil = 0;
  #starts = 0;
  #startsMs = 0;

  /** `hasWaited`: the job waited for something. If not, a long time means that this process did not have the processor. */
  observeJob(durationMs: number, hasWaited = true): void {
    this.#seen++;
    if (this.#jobMs === undefined || this.#seen <= coldJobs) {
      this.#jobMs = Math.min(durationMs, this.#jobMs ?? durationMs);
      return;
    }
    // Rises at once and falls slowly: holding too few costs a little speed, too many makes others wait.
    const weight = hasWaited && durationMs > this.#jobMs ? 0.5 : 0.05;
    const believedMs = hasWaited ? durationMs : Math.min(durationMs, Math.max(this.#jobMs, minJobMs) * maxGrowth);
    this.#jobMs += (believedMs - this.#jobMs) * weight;
  }

  observeClaim(jobs: number, bytes: number): void {
    if (jobs > 0) this.#jobBytes = bytes / jobs;
  }

  /** So many held jobs were started in this time, in which there was always one to start. What was observed before counts half as much. */
  observeStarts(count: number, ms: number): void {
    this.#starts = this.#starts / 2 + count;
    this.#startsMs = this.#startsMs / 2 + ms;
  }

  observeStall(now: number): void {
    this.#stalledUntil = now + restAfterStallMs;
  }

  observeSlowQueue(now: number): void {
    this.#slowQueueUntil = now + restAfterSlowQueueMs;
  }

  /** How many jobs one slot will get through in that moment, one after the other. */
  inARow(now: number): number {
    if (this.#jobMs === undefined || now < Math.max(this.#stalledUntil, this.#slowQueueUntil)) return 1;
    return Math.max(1, Math.floor(Math.min(horizonMs / Math.max(this.#jobMs, 0.001), this.#seen * 4)));
  }

  ahead(slots: number, now: number): number {
    if (this.#jobMs === undefined || now < this.#stalledUntil) return 0;
    const soon = (slots * horizonMs) / Math.max(this.#jobMs, 0.001) - slots;
    const atThisPace = this.#startsMs > 0 ? (this.#starts / this.#startsMs) * startWithinMs : Infinity;
    const affordable = maxBytesAhead / Math.max(this.#jobBytes, 1);
    // Trust grows with what was seen: never more ahead than a few times the jobs done so far.
    return Math.max(0, Math.floor(Math.min(soon, atThisPace, affordable, maxAhead, this.#seen * 4)));
  }
}
