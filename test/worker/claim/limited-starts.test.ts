import { expect, test } from "vitest";
import type { Database } from "../../../src/db/database.ts";
import type { ClaimLimitedRow, StartRow } from "../../../src/db/statements/claim-limited.ts";
import type { Job } from "../../../src/job.ts";
import { monotonicMs } from "../../../src/util/timers.ts";
import { maxHoldMs } from "../../../src/worker/claim/hold-watch.ts";
import { Lateness } from "../../../src/worker/claim/lateness.ts";
import { LimitedClaims } from "../../../src/worker/claim/limited-claims.ts";

const jobs = Array.from({ length: 10 }, (_, n) => ({ id: String(n) }) as Job);

function startsOf(rows: readonly StartRow[] | null, idle: number, lateness = new Lateness()) {
  const limits = new LimitedClaims({
    database: undefined as unknown as Database,
    declaration: () => ({ tasks: [], definitions: [] }),
    relaxed: false,
    lateness,
    timed: () => 0,
    isCrowded: () => false,
    isPaced: true,
    pollInterval: () => 1_000,
    onLimited: () => undefined,
  });
  const row = { starts: rows && JSON.stringify(rows), took_ms: 5 } as ClaimLimitedRow;
  const askedAt = monotonicMs() - 20;
  const before = monotonicMs();
  const starts = limits.starts(row, jobs, { jobs: 10, idle, perQueue: 1 }, askedAt);
  const now = monotonicMs();
  // The claim took 5 ms and was answered just now.
  const firstAt = Math.min(...[...starts.values()].map(({ at }) => at));
  if (starts.size > 0) expect([before - 5 <= firstAt, firstAt <= now - 5]).toEqual([true, true]);
  /** In milliseconds, rounded: `at` after the first start, the others after the question. */
  return jobs.map(({ id }) => {
    const start = starts.get(id);
    if (!start) return null;
    const isCut = start.latestAt <= now + maxHoldMs && start.latestAt < start.intendedUntil;
    return {
      at: Math.round(start.at - firstAt),
      intended: Math.round(start.intendedUntil - askedAt),
      latest: isCut ? "cut" : Math.round(start.latestAt - askedAt),
    };
  });
}

test("jobs of a run without steps have one time, those of a run with steps one after the other, others none", () => {
  const rows: StartRow[] = [
    [1, 3, 0, 0, 90, 0],
    [4, 3, 1_000, 100, 40, 30],
  ];
  expect(startsOf(rows, 10)).toEqual([
    null,
    { at: 0, intended: 90, latest: 90 },
    { at: 0, intended: 90, latest: 90 },
    { at: 0, intended: 90, latest: 90 },
    { at: 1_000, intended: 1_040, latest: 1_070 },
    { at: 1_100, intended: 1_140, latest: 1_170 },
    { at: 1_200, intended: 1_240, latest: 1_270 },
    null,
    null,
    null,
  ]);
  expect(startsOf(null, 10)).toEqual(jobs.map(() => null));
});

test.each([0, 1, 4])("with %i free slots, the jobs beyond them are not held for longer than others", (idle) => {
  const starts = startsOf([[0, 10, 0, 0, 10_000, 0]], idle);
  const free = Math.max(1, idle);
  expect(starts.slice(0, free).map((start) => start!.latest)).toEqual(Array.from({ length: free }, () => 10_000));
  expect(starts.slice(free).map((start) => start!.latest)).toEqual(Array.from({ length: 10 - free }, () => "cut"));
});

test("how much is claimed ahead goes by the run that may be late the least", () => {
  const lateness = new Lateness();
  for (let n = 0; n < 5_000; n++) lateness.keptTime(1);
  lateness.pace.begin(0);
  for (let n = 1; n <= 100; n++) lateness.pace.started(n / 10);
  const rows: StartRow[] = [
    [0, 3, 0, 0, 190, 0],
    [3, 3, 0, 0, 80, 0],
  ];
  for (let n = 0; n < 20; n++) startsOf(rows, 4, lateness);
  expect(lateness.ahead).toBe(400);
});
