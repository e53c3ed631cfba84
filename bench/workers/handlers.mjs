import { now } from "../measure/clock.mjs";

/**
 * What jobs do, and what is remembered of them.
 * A handler takes the payload and, where the system tells, the wall-clock time at which the job was claimed.
 */
export function makeHandlers() {
  const record = { ran: 0, firstAt: undefined, latencies: [], spans: [] };
  const count = () => {
    if (record.ran++ === 0) record.firstAt = now();
  };
  return {
    record,
    handlers: {
      noop: count,
      fail: () => {
        count();
        throw new Error("failed on purpose");
      },
      /** Remembers how long ago the producer began to add this job. */
      stamp: (payload) => {
        record.latencies.push(now() - payload.at);
        count();
      },
      /** Works for `payload.ms`, or remembers how long ago it was added, or does nothing: as its payload says. */
      asked: (payload) => {
        if (payload.at) record.latencies.push(now() - payload.at);
        count();
        return payload.ms ? new Promise((resolve) => setTimeout(resolve, payload.ms)) : undefined;
      },
      /** Works for `payload.ms`, and remembers when. */
      sleep: async (payload, claimedAt) => {
        const span = { claimedAt, startedAt: Date.now(), endedAt: 0 };
        count();
        await new Promise((resolve) => setTimeout(resolve, payload.ms));
        span.endedAt = Date.now();
        record.spans.push(span);
      },
      /** Runs until it is cancelled, and remembers how long ago that was: the reason says when. */
      heed: (_payload, signal) =>
        new Promise((_resolve, reject) => {
          count();
          signal.addEventListener("abort", () => {
            record.latencies.push(now() - Number(signal.reason.cancelReason));
            reject(signal.reason);
          });
        }),
    },
  };
}
