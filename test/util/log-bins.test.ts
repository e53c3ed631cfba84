import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { binCount, binOf, quantileMs, upperMs } from "../../src/util/log-bins.ts";

test("a time belongs to the first bin that does not end before it", () => {
  expect([0, 0.2, 1, 1.01, Math.SQRT2, 1.5, 2, 2.01, 1_000].map(binOf)).toEqual([0, 0, 0, 1, 1, 2, 2, 3, 20]);
  for (let bin = 0; bin < binCount - 1; bin++) expect(binOf(upperMs(bin))).toBe(bin);
  expect(binOf(1e12)).toBe(binCount - 1);
  expect(upperMs(binCount - 1)).toBe(Number.POSITIVE_INFINITY);
  expect(binOf(Number.NaN)).toBe(0);
  expect(quantileMs(new Array(binCount).fill(0), 0.5)).toBeUndefined();
});

/** Times as jobs take them: spread over many sizes. */
const times = fc.array(
  fc.double({ min: 0.001, max: 23, noNaN: true }).map((power) => 2 ** power),
  {
    minLength: 1,
    maxLength: 500,
  },
);

test.prop([times, fc.constantFrom(0.5, 0.95, 0.99)], { numRuns: 200 })(
  "a percentile from bins is within 20 % of the truth",
  (sample, share) => {
    const bins = new Array<number>(binCount).fill(0);
    for (const ms of sample) bins[binOf(ms)]!++;
    const truth = sample.toSorted((a, b) => a - b)[Math.ceil(share * sample.length) - 1]!;
    const found = quantileMs(bins, share)!;
    expect(found).toBeGreaterThan(truth * 0.8);
    expect(found).toBeLessThan(truth * 1.2);
  },
);
