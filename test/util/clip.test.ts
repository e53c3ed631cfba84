import { expect, test } from "vitest";
import { clip } from "../../src/util/clip.ts";

test("a string that fits is left as it is, to the byte", () => {
  expect(clip("é".repeat(50), 100)).toBe("é".repeat(50));
  expect(clip("", 0)).toBe("");
});

test.each([
  ["one byte", "a"],
  ["two bytes", "é"],
  ["three bytes", "漢"],
  ["a surrogate pair", "🐘"],
])("a longer string of characters of %s keeps its head and its tail, and whole characters only", (_what, character) => {
  const text = `HEAD${character.repeat(10_000)}TAIL`;
  const clipped = clip(text, 1_000);
  expect(Buffer.byteLength(clipped)).toBeLessThanOrEqual(1_000);
  expect(Buffer.byteLength(clipped)).toBeGreaterThan(980);
  expect(clipped).toMatch(/^HEAD.*… \([\d,]+ characters cut\) ….*TAIL$/su);
  expect(clipped).not.toContain("\ufffd");
});
