import { describe, expect, expectTypeOf, test } from "vitest";
import { aCount, aDuration, aGroup, aText } from "../../src/config/kinds.ts";
import { findUnknownKeys, type Given, option, type Resolved, readOptions } from "../../src/config/option.ts";
import { ConfigError } from "../../src/errors.ts";

const inner = { depth: option(aCount, { default: 2 }) };
const table = {
  name: option(aText),
  wait: option(aDuration, { default: 5_000 }),
  nested: option(aGroup("Nested", inner), { default: { depth: 2 } }),
};

describe("a table of options", () => {
  test("fills gaps, reads values, and names a wrong one by its path", () => {
    expect(readOptions(table, {})).toEqual({ name: undefined, wait: 5_000, nested: { depth: 2 } });
    expect(readOptions(table, { wait: "30s", nested: { depth: "7" } })).toMatchObject({
      wait: 30_000,
      nested: { depth: 7 },
    });
    expect(() => readOptions(table, { nested: { depth: 0 } })).toThrow(
      new ConfigError("'nested.depth' must be a whole number from 1 up, got 0."),
    );
  });

  test("gives its types to those who write options and to those who use them", () => {
    expectTypeOf<Given<typeof table>>().toEqualTypeOf<{
      name?: string;
      wait?: number | string;
      nested?: { depth?: number };
    }>();
    expectTypeOf<Resolved<typeof table>>().toEqualTypeOf<{
      readonly name: string | undefined;
      readonly wait: number;
      readonly nested: { readonly depth: number };
    }>();
  });

  test("knows which keys are misspelt, at every level", () => {
    expect(findUnknownKeys(table, { nmae: "x", zebra: 1, nested: { dept: 1 } })).toEqual([
      "Unknown option 'nmae' is ignored. Did you mean 'name'?",
      "Unknown option 'zebra' is ignored.",
      "Unknown option 'nested.dept' is ignored. Did you mean 'depth'?",
    ]);
    expect(findUnknownKeys(table, { zebra: 1 }, { onlyNearMisses: true })).toEqual([]);
  });
});

describe("a duration", () => {
  test.each([
    [250, 250],
    ["250", 250],
    ["250ms", 250],
    ["30s", 30_000],
    ["1h30m", 5_400_000],
    ["1d 12h", 129_600_000],
  ])("%o is %d ms", (given, expected) => {
    expect(aDuration.read(given, "wait")).toBe(expected);
  });

  test.each([[-1], [Number.NaN], [Number.POSITIVE_INFINITY], [""], ["soon"], ["5 parsecs"], [[5]], ["-5s"]])(
    "%o is none",
    (given) => {
      expect(() => aDuration.read(given, "wait")).toThrow(
        "'wait' must be a number of milliseconds or a string such as '30s' or '5m', got",
      );
    },
  );
});
