import { expect, test } from "vitest";
import { LookBudget } from "../../src/worker/look-budget.ts";

test("a look is due again when ten times its cost has gone by, and at once when all is to start over", () => {
  const budget = new LookBudget();
  expect(budget.isDue(1_000)).toBe(true);
  budget.spend(1_000, 50);
  expect([1_000, 1_499, 1_500].map((now) => budget.isDue(now))).toEqual([false, false, true]);
  expect(budget.isDue(999)).toBe(true); // the clock was set back
  budget.spend(2_000, 0);
  expect(budget.isDue(2_000)).toBe(true);
  budget.spend(3_000, 50);
  budget.reset();
  expect(budget.isDue(3_001)).toBe(true);
});
