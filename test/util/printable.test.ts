import fc from "fast-check";
import { expect, test } from "vitest";
import { printable, printableLines, printableMessage } from "../../src/util/printable.ts";

test("terminal escapes, line breaks and marks of direction are shown as escapes", () => {
  expect(printable("a\x1b[2Jb\r\nc\td\x07\x7f\x9b\u2028\u202e")).toBe(
    "a\\x1b[2Jb\\r\\nc\\td\\x07\\x7f\\x9b\\u2028\\u202e",
  );
});

test("letters of any script, emoji and spaces stay as they are", () => {
  const text = "Grüße, 日本語, עברית, 👩‍🚀 and \\n as two characters";
  expect(printable(text)).toBe(text);
});

test("a message keeps the indented lines of a stack, and no other line break", () => {
  expect(printableMessage("boom:\n  Error: boom\n      at file.ts\nINFO all is well\x1b[0m")).toBe(
    "boom:\n  Error: boom\n      at file.ts\\nINFO all is well\\x1b[0m",
  );
});

test("whatever is printed has no control characters, and no line that begins like one of ours", () => {
  const nasty = fc.string({
    unit: fc.oneof(fc.constantFrom("\n", "\r", " ", "\x1b", "\x9b", "[", "2", "J"), fc.string()),
  });
  fc.assert(
    fc.property(nasty, (text) => {
      expect(printable(text)).not.toMatch(/\p{Cc}/u);
      expect(printableLines(text).replaceAll(/[\n\t]/g, "")).not.toMatch(/\p{Cc}/u);
      expect(printableMessage(text)).not.toMatch(/\n(?! {2}|$)/);
    }),
    { seed: 15, numRuns: 1_000 },
  );
});
