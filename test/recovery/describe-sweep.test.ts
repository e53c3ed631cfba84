import { expect, test } from "vitest";
import { describeSweep } from "../../src/recovery/describe-sweep.ts";

function describeDeath(metadata: unknown): string[] {
  const worker = { id: "pool-1", reason: "lost", lastHeartbeatAt: null, metadata } as const;
  return describeSweep({
    isDone: true,
    hasLeftovers: false,
    workerIds: ["pool-1"],
    workers: [worker],
    jobs: [],
    recoveredCount: 0,
  });
}

test.each([
  ["nothing is known", null, ""],
  ["it reported no block", { pid: 7, hostname: "vm" }, " (process 7 on vm)"],
  ["a job blocked it", { blocked: { ms: 900, jobs: ["5 (pdf)"] } }, ", its event loop blocked by job 5 (pdf)"],
  [
    "one of two did",
    { blocked: { jobs: ["5 (pdf)", "6 (pdf)"] } },
    ", its event loop blocked by job 5 (pdf) or 6 (pdf)",
  ],
  ["no job did", { blocked: { ms: 900, jobs: [] } }, ", its event loop blocked while no job was running"],
  ["the report is not ours", { blocked: null }, ""],
])("a sweep says what blocked a dead worker: %s", (_what, metadata, said) => {
  const [sentence] = describeDeath(metadata);
  const [place, block] = said.startsWith(",") ? ["", said] : [said, ""];
  expect(sentence).toBe(`Worker pool-1${place} lost its connection and did not reconnect${block}: it held no jobs.`);
});
