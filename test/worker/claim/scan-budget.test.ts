import { expect, test } from "vitest";
import { ScanBudget } from "../../../src/worker/claim/scan-budget.ts";

test("a scan that was costly twice is due again when ten times its cost has gone by", () => {
  const budget = new ScanBudget(0.01);
  budget.spend(500, 80, 0);
  expect([budget.isCostly, budget.dueAt]).toEqual([false, 500]);
  budget.spend(1_000, 50, 0);
  expect([budget.isCostly, budget.dueAt]).toEqual([true, 1_500]);
  budget.spend(1_500, 1, 0);
  expect([budget.isCostly, budget.dueAt]).toEqual([false, 1_500]);
});

test("a scan that took little for what it found is always due", () => {
  const budget = new ScanBudget(0.01);
  for (const [tookMs, jobs] of [
    [1.5, 0],
    [1.5, 0],
    [6, 500],
    [6, 500],
  ] as const) {
    budget.spend(1_000, tookMs, jobs);
    expect([budget.isCostly, budget.dueAt]).toEqual([false, 1_000]);
  }
});
