import { expect, test } from "vitest";
import { startMarks } from "../../src/dashboard/server/pages/start-marks.ts";
import type { WorkerStatus } from "../../src/index.ts";

const minute = 60_000;

function worker(startedMinute: number | null, metadata: unknown): WorkerStatus {
  const startedAt = startedMinute === null ? null : new Date(startedMinute * minute);
  return { startedAt, metadata } as WorkerStatus;
}

test("workers of one version that start one after the other are one mark; a later restart is another", () => {
  const old = { appVersion: "1.0" };
  const fresh = { appVersion: "1.1" };
  const workers = [
    worker(21, fresh),
    worker(1, old),
    worker(30, null),
    worker(20, fresh),
    worker(25, fresh),
    worker(22, old),
    worker(null, fresh),
    worker(40, fresh),
    worker(31, { appVersion: 7 }),
  ];
  expect(startMarks(workers, 10 * minute).map(({ at, ...mark }) => ({ minute: at / 60, ...mark }))).toEqual([
    { minute: 20, version: "1.1", workers: 3 },
    { minute: 22, version: "1.0", workers: 1 },
    { minute: 30, version: null, workers: 2 },
    { minute: 40, version: "1.1", workers: 1 },
  ]);
});

test("however many workers there are, there are few marks, the latest", () => {
  const workers = Array.from({ length: 3_000 }, (_, n) => worker(n * 10, { appVersion: `v${n}` }));
  const marks = startMarks(workers, 0);
  expect(marks.map(({ version }) => version)).toEqual(Array.from({ length: 20 }, (_, n) => `v${2_980 + n}`));
});
