import fc from "fast-check";

/** Every run tries the same; a failure names the path to what broke. */
export const seeded = (numRuns: number): fc.Parameters<unknown> => ({ seed: 15, numRuns, endOnFailure: true });

/** Strings of letters, spaces, quotes, control characters, emoji and halves of them; PostgreSQL has no NUL. */
export const nastyString: fc.Arbitrary<string> = fc
  .oneof(
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.string({ maxLength: 20 }),
    fc.constantFrom(
      "",
      " ",
      "'",
      '"',
      "\\",
      "$$",
      "--",
      ";",
      "null",
      "{}",
      "\n",
      "\x1b[2J",
      "a".repeat(600),
      "ü".repeat(129),
    ),
  )
  .map((text) => Buffer.from(text).toString().replaceAll("\0", ""));

export const nastyNumber: fc.Arbitrary<number> = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, -1, 32_767, 32_768, -32_768, -32_769, 2 ** 31, 1e9, 1e100, NaN, Infinity, -Infinity),
);

/** Anything that JavaScript can hand over. */
export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  nastyString,
  nastyNumber,
  fc.constantFrom(undefined, null, true, false, [], {}, new Date(0), new Date(NaN), Symbol("s"), 10n),
  fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true, withSet: true }),
);
