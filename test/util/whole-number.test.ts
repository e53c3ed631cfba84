import { expect, test } from "vitest";
import { unwrapDefault } from "../../src/util/unwrap-default.ts";
import { expectWholeNumber } from "../../src/util/whole-number.ts";

test.each([
  [1, 1, 9, undefined],
  [9, 1, 9, undefined],
  [0, 1, 9, "a whole number from 1 to 9"],
  [10, 1, 9, "a whole number from 1 to 9"],
  [1.5, 1, undefined, "a whole number from 1 up"],
  [Number.NaN, 1, undefined, "a whole number from 1 up"],
  ["1", 1, undefined, "a whole number from 1 up"],
] as const)("%o from %o to %o: %o", (value, least, most, expected) =>
  expect(expectWholeNumber(value, least, most)).toBe(expected),
);

test("a default export is found under the layers that compilers and Node put around it", () => {
  expect(unwrapDefault({ default: { default: { default: 7 } } })).toBe(7);
  expect(unwrapDefault({ named: 7 })).toEqual({ named: 7 });
  expect(unwrapDefault(null)).toBeNull();
});
