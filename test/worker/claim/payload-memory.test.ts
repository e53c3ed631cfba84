import { getHeapStatistics } from "node:v8";
import { expect, test } from "vitest";
import { reasonNotToParse, reasonNotToRead, sizeWhenParsed } from "../../../src/worker/claim/payload-memory.ts";

test("values count by what they take in memory, and nothing inside a string does", () => {
  const sizeOf = (value: unknown) => {
    const text = JSON.stringify(value);
    const { places, bytes } = sizeWhenParsed(text);
    return { places, bytes: bytes - text.length };
  };
  expect(sizeOf(1)).toEqual({ places: 1, bytes: 8 });
  expect(sizeOf([1, 2.5])).toEqual({ places: 2, bytes: 56 + 2 * 8 + 16 });
  expect(sizeOf([{}, [], {}])).toEqual({ places: 3, bytes: 4 * 56 + 3 * 8 });
  for (const text of ["", "[{,.", '"[', "\\", '\\"[', '[\\\\"', "\\\\"]) {
    expect(sizeOf([text, text])).toEqual(sizeOf(["", ""]));
  }
});

test("a payload is refused when it would take more memory than there is, however short its text is", () => {
  const { heap_size_limit: limit } = getHeapStatistics();
  const text = `[${"[],".repeat(limit / 64)}[]]`;
  expect(reasonNotToRead(text.length)).toBeUndefined();
  expect(reasonNotToParse(text)).toMatch(
    /^The payload needs about \d+ bytes of memory when parsed, more than the \d+ /,
  );
  expect(reasonNotToParse(JSON.stringify("[],".repeat(limit / 64)))).toBeUndefined();
});

test("ordinary records are read as long as their text is a third of the memory", () => {
  const records = Array.from({ length: 1_000 }, (_, id) => ({ id, name: `name ${id}`, email: `${id}@example.com` }));
  const text = JSON.stringify(records);
  expect(sizeWhenParsed(text).bytes).toBeLessThan(3 * text.length);
});
