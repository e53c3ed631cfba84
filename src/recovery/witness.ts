import type { RecoverySettings } from "../config/recovery-options.ts";

type WitnessSettings = Pick<RecoverySettings, "heartbeatInterval" | "sweepThreshold" | "crashGrace">;

/** A worker that is alive has a new line this long after an outage: a try that hangs, a pause, and another try. */
const reconnectMs = 15_000;

/**
 * Two heartbeats of a worker that are further apart than this, by the server's clock, have a break between them. A shorter outage leaves the
 * others half of the threshold for their next heartbeat.
 */
export function maxGapMs({ heartbeatInterval, sweepThreshold }: WitnessSettings): number {
  return Math.max(2 * heartbeatInterval, sweepThreshold / 2);
}

/** After an outage of this length others may have lost their lines, too. */
function maxTroubleMs({ crashGrace }: WitnessSettings): number {
  return crashGrace / 2;
}

/** For how long a worker must have witnessed the others before it judges any of them. */
export function judgingMs({
  crashGrace,
  sweepThreshold,
}: Pick<WitnessSettings, "crashGrace" | "sweepThreshold">): number {
  return Math.min(sweepThreshold, Math.max(crashGrace, reconnectMs));
}

/**
 * How long the others have for a new line after they have lost theirs. Whatever took ours, however soon we had another, may have taken theirs: then they have
 * as long as after an outage. `lineForMs` is how long we have had our line; Infinity for the first.
 */
export function graceMs(settings: Pick<WitnessSettings, "crashGrace" | "sweepThreshold">, lineForMs: number): number {
  const { crashGrace } = settings;
  const afterOutage = Math.max(crashGrace, judgingMs(settings));
  return lineForMs < afterOutage ? afterOutage : crashGrace;
}

/**
 * Since when the heartbeats of a worker have arrived without a break, by the server's clock. Time in which the server took none is not
 * counted against any worker: what a worker has not witnessed, it does not hold against others.
 */
export class Witness {
  readonly #settings: WitnessSettings;
  #since: number | undefined;
  #last = 0;
  #lineSince = Number.NEGATIVE_INFINITY;

  constructor(settings: WitnessSettings) {
    this.#settings = settings;
  }

  /** Since when our line has not been lost, by the server's clock. Our first line was never lost, whenever it began. */
  get lineSince(): number {
    return this.#lineSince;
  }

  /** A heartbeat arrived at this time, after so many milliseconds in which it could not. Gives the beginning of the time witnessed. */
  note(atMs: number, troubleMs: number, isOnNewLine = false): number {
    const { heartbeatInterval, sweepThreshold } = this.#settings;
    if (this.#since === undefined) {
      // A worker that has only just started gives the others two heartbeats.
      this.#since = atMs - Math.max(0, sweepThreshold - 2 * heartbeatInterval);
    } else {
      const gapMs = atMs - this.#last;
      if (gapMs < 0 || gapMs > maxGapMs(this.#settings) || troubleMs > maxTroubleMs(this.#settings)) this.#since = atMs;
    }
    // A clock that was set back must not make a line older.
    if (isOnNewLine || atMs < this.#lineSince) this.#lineSince = atMs;
    this.#last = atMs;
    return this.#since;
  }
}
